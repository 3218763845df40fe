-- After it: the head has moved by as many events as follow in this transaction, its time has not run backwards, and discovery
-- will find it by this transaction's id. One row: the time to record with those events.
-- Locks: runs in the transaction that locked the head with heads/lock.sql.
-- $1 tenant, $2 events, $3 now in microseconds, null for the database's clock
UPDATE heads
   SET head = head + $2,
       at = greatest(at, coalesce($3::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)),
       xid = pg_current_xact_id()
 WHERE tenant_no = $1
RETURNING at;
