-- After it: nothing changed. Dead letters of one tenant, in ascending order of their key.
-- Locks: none.
-- $1 tenant, $2 how many at most
SELECT projection_no, version, build, seq, member, event_id, event_type, class, reason, at
  FROM dead_letters
 WHERE tenant_no = $1
 ORDER BY projection_no, version, build, seq, member
 LIMIT $2;
