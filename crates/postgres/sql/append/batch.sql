-- After it: every entry whose locked head, place and openness are as expected is in the log, its head has moved, its time has
-- not run backwards, and discovery will find it. The others left nothing behind. One row per entry, in the order asked: what
-- was found under the lock, nulls when the head was locked by somebody else or is not here (`here` tells which); `at` where it
-- was appended.
-- Locks: the head rows of the batch, in ascending order of tenant, never waiting for one; nothing else. Reads nothing that
-- those locks do not cover. One statement without a transaction block: the commit is in it.
-- arrays per entry: $1 tenant ascending, $2 expected head, $3 expected place, $4 events; $5 now in microseconds, null for the
-- database's clock; arrays per event, in order: $6 tenant, $7 seq, $8 stream, $9 version, $10 id, $11 type, $12 encoding,
-- $13 size, $14 headers, $15 body
WITH asked AS (
    SELECT u.tenant_no, u.head, u.place, u.n
      FROM unnest($1::int4[], $2::int8[], $3::int4[], $4::int8[]) AS u (tenant_no, head, place, n)
), l AS MATERIALIZED (
    SELECT tenant_no, head, open, place, at
      FROM heads
     WHERE tenant_no = ANY ($1::int4[])
     ORDER BY tenant_no
       FOR NO KEY UPDATE SKIP LOCKED
), g AS MATERIALIZED (
    SELECT l.tenant_no, l.head, l.place, a.n,
           greatest(l.at, coalesce($5::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)) AS at
      FROM l
      JOIN asked a ON a.tenant_no = l.tenant_no AND a.head = l.head AND a.place = l.place
     WHERE l.open
), i AS (
    INSERT INTO events (place, tenant_no, at, seq, stream, version, id, type, encoding, size, headers, body)
    SELECT g.place, g.tenant_no, g.at, e.seq, e.stream, e.version, e.id, e.type, e.encoding, e.size, e.headers, e.body
      FROM unnest($6::int4[], $7::int8[], $8::text[], $9::int8[], $10::uuid[], $11::text[], $12::int2[], $13::int4[],
                  $14::bytea[], $15::bytea[])
           AS e (tenant_no, seq, stream, version, id, type, encoding, size, headers, body)
      JOIN g ON g.tenant_no = e.tenant_no
), x AS (
    UPDATE heads h
       SET head = g.head + g.n, at = g.at, xid = pg_current_xact_id()
      FROM g
     WHERE h.tenant_no = g.tenant_no
)
SELECT a.tenant_no, l.head, l.open, l.place, g.at,
       CASE WHEN l.tenant_no IS NULL THEN EXISTS (SELECT 1 FROM heads h WHERE h.tenant_no = a.tenant_no) ELSE true END AS here
  FROM asked a
  LEFT JOIN l ON l.tenant_no = a.tenant_no
  LEFT JOIN g ON g.tenant_no = a.tenant_no
 ORDER BY a.tenant_no;
