-- After it: nothing changed. Each row carries the head and at most one event; the event after the last one that fits comes
-- with only its sequence and size. `reach` is the sequence up to which the range was looked at, `found` how many events lie
-- between `after` and there: fewer than the difference means a hole. In any order: sorting here would hold every body twice.
-- Locks: none. One statement, so head and events are of one snapshot. Walks the key in order and stops at the row after the
-- page; bodies of other types are never touched.
-- $1 tenant, $2 after, $3 up to, $4 types as a JSON array or null, $5 events at most, $6 bytes at most
WITH top AS MATERIALIZED (
    SELECT head, place, max($2, min(head, $3)) AS bound
      FROM heads
     WHERE tenant_no = $1
), wanted AS MATERIALIZED (
    SELECT e.seq, e.size
      FROM events e
     WHERE e.place = (SELECT place FROM top)
       AND e.tenant_no = $1
       AND e.seq > $2
       AND e.seq <= (SELECT bound FROM top)
       AND ($4 IS NULL OR e.type IN (SELECT value FROM json_each($4)))
     ORDER BY e.seq
     LIMIT $5 + 1
), summed AS MATERIALIZED (
    SELECT seq, size, sum(size) OVER so_far <= $6 AND count(*) OVER so_far <= $5 AS fits
      FROM wanted
    WINDOW so_far AS (ORDER BY seq ROWS UNBOUNDED PRECEDING)
), reached AS MATERIALIZED (
    SELECT coalesce((SELECT min(seq) - 1 FROM summed WHERE NOT fits), top.bound) AS reach
      FROM top
), counted AS MATERIALIZED (
    SELECT count(*) AS found
      FROM events e
     WHERE e.place = (SELECT place FROM top)
       AND e.tenant_no = $1
       AND e.seq > $2
       AND e.seq <= (SELECT reach FROM reached)
), page AS MATERIALIZED (
    SELECT seq, size, fits
      FROM summed
     WHERE fits OR seq = (SELECT reach + 1 FROM reached)
)
SELECT top.head, r.reach, c.found, p.seq, p.size, p.fits,
       e.stream, e.version, e.id, e.type, e.encoding, e.at, e.headers, e.body
  FROM top
 CROSS JOIN reached r
 CROSS JOIN counted c
  LEFT JOIN page p ON true
  LEFT JOIN events e ON p.fits AND e.place = top.place AND e.tenant_no = $1 AND e.seq = p.seq;
