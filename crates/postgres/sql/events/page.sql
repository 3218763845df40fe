-- After it: nothing changed. Every row carries the head and the place; each row at most one event, in order. `nth` counts every
-- event of the range, so a hole shows as nth <> seq - after. Rows that are not `wanted` are left out, but for the one at the
-- end of what can be read, which proves that the range is whole. The row after the last event that fits comes without content.
-- No event when the tenant lies in another place than $2.
-- Locks: none. One statement, so head and events are of one snapshot. The place is a parameter, so that a custom plan looks
-- at one partition only. Walks the key in order and stops at the row after the page: by the LIMIT, or because a plain
-- count(*) that must stay below 1 ends the walk (other forms of it do not). Bodies that do not come back are never read.
-- $1 tenant, $2 place, $3 after, $4 look up to, $5 types or null, $6 events at most, $7 bytes at most
WITH h AS MATERIALIZED (
    SELECT head, place
      FROM heads
     WHERE tenant_no = $1
), looked AS (
    SELECT e.seq, e.version, e.at, e.id, e.size, e.encoding, e.stream, e.type, e.headers, e.body,
           row_number() OVER so_far AS nth,
           ($5::text[] IS NULL OR e.type = ANY ($5::text[])) AS wanted
      FROM events e
     WHERE e.place = $2 AND e.tenant_no = $1 AND e.seq > $3 AND e.seq <= $4
    WINDOW so_far AS (ORDER BY e.seq ROWS UNBOUNDED PRECEDING)
), summed AS (
    SELECT l.*,
           sum(CASE WHEN l.wanted THEN l.size ELSE 0 END) OVER so_far AS bytes,
           count(*) OVER so_far AS rank
      FROM looked l
     WHERE l.wanted OR l.seq = (SELECT least(head, $4) FROM h)
    WINDOW so_far AS (ORDER BY l.seq ROWS UNBOUNDED PRECEDING)
), cut AS (
    SELECT s.*,
           s.wanted AND s.bytes <= $7 AND s.rank <= $6 AS fits,
           count(*) FILTER (WHERE s.bytes - s.size > $7) OVER so_far AS beyond
      FROM summed s
    WINDOW so_far AS (ORDER BY s.seq ROWS UNBOUNDED PRECEDING)
), page AS (
    SELECT *
      FROM cut
     WHERE beyond < 1
     ORDER BY seq
     LIMIT $6 + 1
)
SELECT h.head, h.place, p.seq, p.nth, p.wanted, p.fits, p.size, p.version, p.at, p.id, p.encoding, p.stream, p.type,
       CASE WHEN p.fits THEN p.headers END AS headers,
       CASE WHEN p.fits THEN p.body END AS body
  FROM h
  LEFT JOIN page p ON h.place = $2
 ORDER BY p.seq;
