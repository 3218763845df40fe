-- After it: these documents are stored; older ones under the same keys are gone.
-- Locks: runs in the page's write transaction.
-- The line of placeholders is repeated for as many rows as go in at once.
INSERT INTO {view} (tenant_no, build, key, body)
VALUES
    (?, ?, ?, ?)
    ON CONFLICT (tenant_no, build, key) DO UPDATE SET body = excluded.body;
