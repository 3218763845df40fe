-- After it: nothing changed. Each row carries head, place and last version, and at most one event. The first event comes
-- whatever its size. In any order: sorting here would hold every body twice.
-- Locks: none. One statement, so head and events are of one snapshot.
-- $1 tenant, $2 stream, $3 after this version, $4 events at most, $5 bytes at most
WITH top AS MATERIALIZED (
    SELECT head, place
      FROM heads
     WHERE tenant_no = $1
), wanted AS MATERIALIZED (
    SELECT e.version, e.seq, e.size
      FROM events e
     WHERE e.place = (SELECT place FROM top)
       AND e.tenant_no = $1
       AND e.stream = $2
       AND e.version > $3
     ORDER BY e.version
     LIMIT $4
), summed AS MATERIALIZED (
    SELECT version, seq, sum(size) OVER so_far AS bytes, count(*) OVER so_far AS nth
      FROM wanted
    WINDOW so_far AS (ORDER BY version ROWS UNBOUNDED PRECEDING)
)
SELECT top.head, top.place,
       coalesce((SELECT max(l.version) FROM events l WHERE l.place = top.place AND l.tenant_no = $1 AND l.stream = $2), 0),
       s.seq, e.stream, e.version, e.id, e.type, e.encoding, e.at, e.headers, e.body
  FROM top
  LEFT JOIN summed s ON s.bytes <= $5 OR s.nth = 1
  LEFT JOIN events e ON e.place = top.place AND e.tenant_no = $1 AND e.seq = s.seq;
