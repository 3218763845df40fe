-- After it: the projection is registered; one row with its number.
-- Locks: runs in the write transaction of its caller.
-- $1 name
INSERT INTO projections (name)
VALUES ($1)
    ON CONFLICT (name) DO UPDATE SET name = excluded.name
RETURNING projection_no;
