-- After it: the dead letter is kept, once, however often its page was done.
-- Locks: runs in the page's write transaction.
-- $1 tenant, $2 projection, $3 version, $4 build, $5 sequence, $6 member, $7 event id, $8 event type, $9 class, $10 reason,
-- $11 when
INSERT INTO dead_letters (tenant_no, projection_no, version, build, seq, member, event_id, event_type, class, reason, at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    ON CONFLICT (tenant_no, projection_no, version, build, seq, member)
    DO UPDATE SET event_id = excluded.event_id, event_type = excluded.event_type, class = excluded.class,
                  reason = excluded.reason, at = excluded.at;
