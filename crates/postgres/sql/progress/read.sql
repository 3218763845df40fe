-- After it: nothing changed. One row per key asked for, in the order asked; nulls where nobody was positioned.
-- Locks: none.
-- arrays: $1 tenant, $2 projection, $3 version, $4 build
SELECT p.seq, p.generation, p.owner
  FROM unnest($1::int4[], $2::int4[], $3::int8[], $4::int4[]) WITH ORDINALITY
       AS k (tenant_no, projection_no, version, build, nth)
  LEFT JOIN progress p
    ON p.tenant_no = k.tenant_no AND p.projection_no = k.projection_no AND p.version = k.version AND p.build = k.build
 ORDER BY k.nth;
