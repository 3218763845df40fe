-- After it: this version of the view is registered; one row with its number. Its table follows by views/create.sql.
-- Locks: runs in the write transaction of its caller.
-- $1 name, $2 version
INSERT INTO views (name, version)
VALUES ($1, $2)
    ON CONFLICT (name, version) DO UPDATE SET name = excluded.name
RETURNING view_no;
