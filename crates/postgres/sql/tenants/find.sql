-- After it: nothing changed. One row for a tenant that is registered under this id, none otherwise.
-- Locks: none.
-- $1 id
SELECT t.tenant_no, t.id, h.place, h.open
  FROM tenants t
  JOIN heads h ON h.tenant_no = t.tenant_no
 WHERE t.id = $1;
