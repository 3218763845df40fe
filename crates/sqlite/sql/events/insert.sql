-- After it: these events of one or more tenants are in the log.
-- Locks: runs in the write transaction that compared the heads and moves them with heads/advance.sql.
-- The line of placeholders is repeated for as many rows as go in at once.
INSERT INTO events (place, tenant_no, seq, stream, version, id, type, encoding, at, size, headers, body)
VALUES
    (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
