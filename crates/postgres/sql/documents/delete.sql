-- After it: no document under these keys exists.
-- Locks: the rows of these documents; only the holder of the progress row writes them, so nobody waits for them.
-- $1 tenant, $2 build, $3 keys
DELETE FROM {view}
 WHERE tenant_no = $1 AND build = $2 AND key = ANY ($3::text[]);
