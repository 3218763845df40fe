-- After it: nothing changed. One row per stream asked for, in the order asked, at least one; no row when the tenant is not
-- here. A stream that does not exist has version zero.
-- Locks: none of its own; under the head when the caller's transaction began IMMEDIATE.
-- $1 tenant, $2 streams as a JSON array
SELECT h.head, h.place, s.value IS NOT NULL,
       coalesce((SELECT max(e.version)
                   FROM events e
                  WHERE e.place = h.place AND e.tenant_no = h.tenant_no AND e.stream = s.value), 0),
       coalesce((SELECT f.archived FROM streams f WHERE f.tenant_no = h.tenant_no AND f.stream = s.value), 0)
  FROM heads h
  LEFT JOIN json_each($2) s ON true
 WHERE h.tenant_no = $1
 ORDER BY s.key;
