-- After it: the projection is registered; one row with its number.
-- Locks: the row of that name, for the moment of the statement. Runs under the advisory lock of registrations, so that
-- repeating it burns no number.
-- $1 name
WITH found AS (
    SELECT projection_no
      FROM projections
     WHERE name = $1
), made AS (
    INSERT INTO projections (name)
    SELECT $1
     WHERE NOT EXISTS (SELECT 1 FROM found)
    RETURNING projection_no
)
SELECT projection_no FROM found
 UNION ALL
SELECT projection_no FROM made;
