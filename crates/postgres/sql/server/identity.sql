-- After it: nothing changed. One row: which server, on which timeline, started when, answers through which backend.
-- Locks: none.
SELECT (SELECT system_identifier::text FROM pg_control_system()),
       (SELECT timeline_id FROM pg_control_checkpoint()),
       (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::int8,
       pg_backend_pid(),
       current_database()::text;
