-- After it: nothing changed. Every head that a commit after the change number $1 moved, or created.
-- Locks: none. Exact, because the numbers are handed out under the write lock, in commit order.
-- $1 the largest change number seen so far
SELECT h.tenant_no, t.id, h.head, h.moved
  FROM heads h
  JOIN tenants t ON t.tenant_no = h.tenant_no
 WHERE h.moved > $1
 ORDER BY h.moved, h.tenant_no;
