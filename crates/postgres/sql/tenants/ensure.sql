-- After it: a tenant of this id is registered with an open head at zero; one row if this statement did it, none if the tenant
-- was there already. Its place is one of the sixteen shared ones, by its number; its first event may be of any time.
-- Locks: waits for another registration of the same id until that one commits.
-- $1 id
WITH t AS (
    INSERT INTO tenants (id)
    VALUES ($1)
        ON CONFLICT (id) DO NOTHING
    RETURNING tenant_no, id
), h AS (
    INSERT INTO heads (tenant_no, head, open, place, at, xid)
    SELECT t.tenant_no, 0, true, t.tenant_no % 16, -9223372036854775808, pg_current_xact_id()
      FROM t
    RETURNING tenant_no, place, open
)
SELECT t.tenant_no, t.id, h.place, h.open
  FROM t
  JOIN h ON h.tenant_no = t.tenant_no;
