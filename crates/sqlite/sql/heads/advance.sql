-- After it: the heads have moved by as many as their tenants appended, their time has not run backwards, and discovery will
-- find them above every change number handed out so far.
-- Locks: runs in the write transaction that read these heads with append/batch.sql or heads/lock.sql.
-- $1 [[tenant, events], …] as JSON, $2 now in microseconds, $3 the change number of this commit
UPDATE heads
   SET head = head + a.n, at = max(at, $2), moved = $3
  FROM (SELECT json_extract(value, '$[0]') AS tenant_no, json_extract(value, '$[1]') AS n FROM json_each($1)) a
 WHERE heads.tenant_no = a.tenant_no;
