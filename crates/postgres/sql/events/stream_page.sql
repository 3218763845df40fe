-- After it: nothing changed. Every row carries head, place and the stream's last version; each row at most one event, in
-- order. The first event comes whatever its size. No event when the tenant lies in another place than $2.
-- Locks: none. One statement, so head and events are of one snapshot. The place is a parameter, so that a custom plan looks
-- at one partition only.
-- $1 tenant, $2 place, $3 stream, $4 after this version, $5 events at most, $6 bytes at most
WITH h AS MATERIALIZED (
    SELECT head, place
      FROM heads
     WHERE tenant_no = $1
), last AS MATERIALIZED (
    SELECT e.version
      FROM events e
     WHERE e.place = $2 AND e.tenant_no = $1 AND e.stream = $3
     ORDER BY e.version DESC
     LIMIT 1
), found AS (
    SELECT e.seq, e.version, e.at, e.id, e.size, e.encoding, e.stream, e.type, e.headers, e.body
      FROM events e
     WHERE e.place = $2 AND e.tenant_no = $1 AND e.stream = $3 AND e.version > $4
     ORDER BY e.version
     LIMIT $5
), summed AS (
    SELECT f.*, sum(f.size) OVER so_far AS bytes, row_number() OVER so_far AS nth
      FROM found f
    WINDOW so_far AS (ORDER BY f.version ROWS UNBOUNDED PRECEDING)
)
SELECT h.head, h.place, coalesce((SELECT version FROM last), 0), s.seq, s.version, s.at, s.id, s.encoding, s.stream, s.type,
       s.headers, s.body
  FROM h
  LEFT JOIN summed s ON h.place = $2 AND (s.bytes <= $6 OR s.nth = 1)
 ORDER BY s.version;
