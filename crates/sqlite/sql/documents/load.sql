-- After it: nothing changed. The documents of these keys that exist.
-- Locks: none.
-- $1 tenant, $2 build, $3 keys as a JSON array
SELECT d.key, d.body
  FROM json_each($3) k
 CROSS JOIN {view} d
 WHERE d.tenant_no = $1 AND d.build = $2 AND d.key = k.value;
