-- After it: nothing changed. The appends of this tenant that carried one of these ids, in the order asked.
-- Locks: none of its own; right only under the head, in the write transaction of an append.
-- $1 tenant, $2 ids in hexadecimal, a JSON array
SELECT i.id, i.digest, i.first, i.n
  FROM json_each($2) k
 CROSS JOIN append_ids i
 WHERE i.tenant_no = $1 AND i.id = unhex(k.value)
 ORDER BY k.key;
