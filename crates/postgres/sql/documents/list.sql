-- After it: nothing changed. Documents in ascending byte order of their key.
-- Locks: none.
-- $1 tenant, $2 build, $3 key to start after ('' from the first), $4 how many at most
SELECT key, body
  FROM {view}
 WHERE tenant_no = $1 AND build = $2 AND key > $3
 ORDER BY key
 LIMIT $4;
