-- After it: these dead letters are kept, once each, however often their page was done.
-- Locks: runs in the page's transaction, under the progress row.
-- arrays: $1 tenant, $2 projection, $3 version, $4 build, $5 sequence, $6 member, $7 event id, $8 event type, $9 class,
-- $10 reason, $11 when in microseconds, null for the database's clock
INSERT INTO dead_letters (tenant_no, projection_no, version, build, seq, member, event_id, event_type, class, reason, at)
SELECT u.tenant_no, u.projection_no, u.version, u.build, u.seq, u.member, u.event_id, u.event_type, u.class, u.reason,
       coalesce(u.at, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
  FROM unnest($1::int4[], $2::int4[], $3::int8[], $4::int4[], $5::int8[], $6::text[], $7::uuid[], $8::text[], $9::text[],
              $10::text[], $11::int8[])
       AS u (tenant_no, projection_no, version, build, seq, member, event_id, event_type, class, reason, at)
    ON CONFLICT (tenant_no, projection_no, version, build, seq, member)
    DO UPDATE SET event_id = excluded.event_id, event_type = excluded.event_type, class = excluded.class,
                  reason = excluded.reason, at = excluded.at;
