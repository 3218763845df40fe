-- After it: no document under these keys exists.
-- Locks: runs in the page's write transaction.
-- $1 tenant, $2 build, $3 keys as a JSON array
DELETE FROM {view}
 WHERE tenant_no = $1 AND build = $2 AND key IN (SELECT value FROM json_each($3));
