-- After it: nothing changed. One row per key asked for, in the order asked; nulls where nobody was positioned.
-- Locks: none.
-- $1 [[tenant, projection, version, build], …] as JSON
SELECT p.seq, p.generation, p.owner
  FROM json_each($1) k
  LEFT JOIN progress p
    ON p.tenant_no = json_extract(k.value, '$[0]')
   AND p.projection_no = json_extract(k.value, '$[1]')
   AND p.version = json_extract(k.value, '$[2]')
   AND p.build = json_extract(k.value, '$[3]')
 ORDER BY k.key;
