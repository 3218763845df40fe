-- After it: nothing changed. The first row carries the next cursor; each row at most one head that a transaction with an id
-- of $1 or above touched: every head that moved since the read that returned $1, and those of transactions that were still
-- open then. The look-up by name runs once per head found, not once per head.
-- Locks: none. One statement, so cursor and heads are of one snapshot.
-- $1 cursor: 0 for all heads
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::int8, h.tenant_no,
       (SELECT t.id FROM tenants t WHERE t.tenant_no = h.tenant_no), h.head
  FROM (VALUES (1)) AS one (row_no)
  LEFT JOIN heads h ON h.xid >= $1::int8::text::xid8;
