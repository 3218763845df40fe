-- After it: nothing changed. One row per stream asked for, in the order asked, at least one; no row when the tenant is not
-- here. A stream that does not exist has version zero. The versions mean nothing when the tenant lies in another place than $2.
-- Locks: none of its own; under the head when the caller's transaction holds it. One walk down the index per stream: a join
-- with the events would look at all of them.
-- $1 tenant, $2 place, $3 streams
SELECT h.head, h.place, h.open, s.nth, coalesce(v.version, 0), coalesce(f.archived, false)
  FROM heads h
  LEFT JOIN unnest($3::text[]) WITH ORDINALITY AS s (stream, nth) ON true
  LEFT JOIN LATERAL (
        SELECT e.version
          FROM events e
         WHERE e.place = $2 AND e.tenant_no = $1 AND e.stream = s.stream
         ORDER BY e.version DESC
         LIMIT 1
       ) v ON true
  LEFT JOIN streams f ON f.tenant_no = $1 AND f.stream = s.stream
 WHERE h.tenant_no = $1
 ORDER BY s.nth;
