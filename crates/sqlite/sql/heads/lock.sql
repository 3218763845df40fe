-- After it: nothing changed. The head of one tenant, no row when it is not here. The last column is the change number that
-- heads/advance.sql has to use.
-- Locks: none of its own. The caller's BEGIN IMMEDIATE is what locks every head of the file.
-- $1 tenant
SELECT head, open, place, at, coalesce((SELECT max(moved) FROM heads), 0) + 1
  FROM heads
 WHERE tenant_no = $1;
