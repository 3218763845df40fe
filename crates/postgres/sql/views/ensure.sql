-- After it: this version of the view is registered; one row with its number. Its table follows by views/create.sql.
-- Locks: runs under the advisory lock of registrations, in the transaction that creates the table.
-- $1 name, $2 version
WITH found AS (
    SELECT view_no
      FROM views
     WHERE name = $1 AND version = $2
), made AS (
    INSERT INTO views (name, version)
    SELECT $1, $2
     WHERE NOT EXISTS (SELECT 1 FROM found)
    RETURNING view_no
)
SELECT view_no FROM found
 UNION ALL
SELECT view_no FROM made;
