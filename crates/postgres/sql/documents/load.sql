-- After it: nothing changed. The documents of these keys that exist.
-- Locks: none.
-- $1 tenant, $2 build, $3 keys
SELECT key, body
  FROM {view}
 WHERE tenant_no = $1 AND build = $2 AND key = ANY ($3::text[]);
