-- After it: the progress is at $8, if sequence, generation and owner are still what the page began with; no row changed
-- otherwise.
-- Locks: runs in the page's transaction, last; the row is locked since its first statement.
-- $1 tenant, $2 projection, $3 version, $4 build, $5 from, $6 generation, $7 owner, $8 to
UPDATE progress
   SET seq = $8
 WHERE tenant_no = $1 AND projection_no = $2 AND version = $3 AND build = $4
   AND seq = $5 AND generation = $6 AND owner = $7;
