-- After it: these rows are positioned: new ones at sequence zero, old ones where they were, with the given generation; owned
-- by $2 where the claim held, by nobody where a new row was refused.
-- Locks: runs in the write transaction that read the rows with progress/read.sql and decided.
-- $1 [[tenant, projection, version, build, generation, held], …] as JSON, $2 owner
INSERT INTO progress (tenant_no, projection_no, version, build, seq, generation, owner)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'), json_extract(value, '$[3]'),
       0, json_extract(value, '$[4]'), iif(json_extract(value, '$[5]'), $2, NULL)
  FROM json_each($1)
 WHERE true
    ON CONFLICT (tenant_no, projection_no, version, build)
    DO UPDATE SET generation = excluded.generation, owner = excluded.owner;
