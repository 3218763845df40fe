-- After it: the progress row is locked until the page's transaction ends; what the page must compare before it does any work.
-- No row when nobody was positioned.
-- Locks: the progress row, first in the transaction, waiting at most lock_timeout.
-- $1 tenant, $2 projection, $3 version, $4 build
SELECT seq, generation, owner
  FROM progress
 WHERE tenant_no = $1 AND projection_no = $2 AND version = $3 AND build = $4
   FOR NO KEY UPDATE;
