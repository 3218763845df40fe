-- After it: every claim that is strong enough holds its row: generation and owner are the claimant's. Rows that were not there
-- are made at sequence zero. One row per request with what the row holds now and whether the claim won; a request without a
-- row in the answer met somebody who made the same row at this moment: send it again.
-- Locks: the progress rows in key order, waiting at most lock_timeout for each. One statement without a transaction block.
-- $1 owner; arrays: $2 tenant, $3 projection, $4 version, $5 build, $6 granted generation or null for a take-over,
-- $7 seen sequence or null, $8 seen generation or null, $9 seen owner or null
WITH r AS MATERIALIZED (
    SELECT *
      FROM unnest($2::int4[], $3::int4[], $4::int8[], $5::int4[], $6::int8[], $7::int8[], $8::int8[], $9::uuid[])
           AS u (tenant_no, projection_no, version, build, granted, seen_seq, seen_generation, seen_owner)
), l AS MATERIALIZED (
    SELECT p.tenant_no, p.projection_no, p.version, p.build, p.seq, p.generation, p.owner,
           r.granted, r.seen_seq, r.seen_generation, r.seen_owner
      FROM progress p
      JOIN r ON r.tenant_no = p.tenant_no AND r.projection_no = p.projection_no AND r.version = p.version AND r.build = p.build
     ORDER BY p.tenant_no, p.projection_no, p.version, p.build
       FOR NO KEY UPDATE OF p
), c AS MATERIALIZED (
    SELECT l.*,
           CASE WHEN l.granted IS NOT NULL
                THEN CASE WHEN l.generation < l.granted
                            OR (l.generation = l.granted AND (l.owner IS NULL OR l.owner <= $1::uuid))
                          THEN l.granted END
                WHEN l.seen_seq IS NULL
                  OR (l.seq = l.seen_seq AND l.generation = l.seen_generation AND l.owner IS NOT DISTINCT FROM l.seen_owner)
                THEN l.generation + 1
           END AS won
      FROM l
), u AS (
    UPDATE progress p
       SET generation = c.won, owner = $1
      FROM c
     WHERE c.won IS NOT NULL
       AND p.tenant_no = c.tenant_no AND p.projection_no = c.projection_no AND p.version = c.version AND p.build = c.build
), fresh AS MATERIALIZED (
    SELECT r.tenant_no, r.projection_no, r.version, r.build,
           CASE WHEN r.granted >= 0 THEN r.granted
                WHEN r.granted IS NULL
                 AND (r.seen_seq IS NULL OR (r.seen_seq = 0 AND r.seen_generation = 0 AND r.seen_owner IS NULL))
                THEN 1
           END AS won
      FROM r
     WHERE NOT EXISTS (SELECT 1
                         FROM progress p
                        WHERE p.tenant_no = r.tenant_no AND p.projection_no = r.projection_no
                          AND p.version = r.version AND p.build = r.build)
), made AS (
    INSERT INTO progress (tenant_no, projection_no, version, build, seq, generation, owner)
    SELECT f.tenant_no, f.projection_no, f.version, f.build, 0, coalesce(f.won, 0),
           CASE WHEN f.won IS NOT NULL THEN $1::uuid END
      FROM fresh f
     ORDER BY f.tenant_no, f.projection_no, f.version, f.build
        ON CONFLICT DO NOTHING
    RETURNING tenant_no, projection_no, version, build, seq, generation, owner
)
SELECT tenant_no, projection_no, version, build, seq, coalesce(won, generation),
       CASE WHEN won IS NULL THEN owner ELSE $1::uuid END, won IS NOT NULL
  FROM c
 UNION ALL
SELECT tenant_no, projection_no, version, build, seq, generation, owner, owner IS NOT NULL
  FROM made;
