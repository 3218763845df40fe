-- After it: a tenant of this id is registered, with a head whose time is before all times; one that was there is unchanged.
-- Locks: runs in the write transaction of its caller.
-- $1 id
INSERT INTO tenants (id)
SELECT $1
 WHERE NOT EXISTS (SELECT 1 FROM tenants WHERE id = $1);

INSERT INTO heads (tenant_no, head, open, place, at, moved)
SELECT t.tenant_no, 0, 1, 0, -9223372036854775808, coalesce((SELECT max(moved) FROM heads), 0) + 1
  FROM tenants t
 WHERE t.id = $1
   AND NOT EXISTS (SELECT 1 FROM heads h WHERE h.tenant_no = t.tenant_no);
