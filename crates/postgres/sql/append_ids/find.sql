-- After it: nothing changed. The appends of this tenant that carried one of these ids.
-- Locks: none of its own; right only under the head, in the transaction of an append.
-- $1 tenant, $2 ids
SELECT id, digest, first, n
  FROM append_ids
 WHERE tenant_no = $1 AND id = ANY ($2::uuid[]);
