-- After it: these documents are stored; older ones under the same keys are gone.
-- Locks: the rows of these documents; only the holder of the progress row writes them, so nobody waits for them.
-- $1 tenant, $2 build; arrays: $3 key, $4 body
INSERT INTO {view} (tenant_no, build, key, body)
SELECT $1, $2, u.key, u.body
  FROM unnest($3::text[], $4::bytea[]) AS u (key, body)
    ON CONFLICT (tenant_no, build, key) DO UPDATE SET body = excluded.body;
