-- After it: nothing changed. What a page's transaction must compare before it writes; no row when nobody was positioned.
-- Locks: none of its own. The caller's BEGIN IMMEDIATE keeps every other writer out until the page has committed.
-- $1 tenant, $2 projection, $3 version, $4 build
SELECT seq, generation, owner
  FROM progress
 WHERE tenant_no = $1 AND projection_no = $2 AND version = $3 AND build = $4;
