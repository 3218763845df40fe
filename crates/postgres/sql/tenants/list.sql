-- After it: nothing changed. Tenants in ascending order of number.
-- Locks: none.
-- $1 number to start after, $2 how many at most
SELECT t.tenant_no, t.id, h.place, h.open
  FROM tenants t
  JOIN heads h ON h.tenant_no = t.tenant_no
 WHERE t.tenant_no > $1
 ORDER BY t.tenant_no
 LIMIT $2;
