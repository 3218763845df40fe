-- After it: the head of one tenant is locked until the transaction ends; no row when the tenant is not here.
-- Locks: the head row, waiting at most the transaction's lock_timeout. The first and only lock of an append.
-- $1 tenant
SELECT head, open, place
  FROM heads
 WHERE tenant_no = $1
   FOR NO KEY UPDATE;
