-- After it: the view's table exists. Keys compare byte for byte.
-- Locks: runs in the write transaction that registered the view with views/ensure.sql.
CREATE TABLE IF NOT EXISTS {view} (
    tenant_no INTEGER NOT NULL,
    build     INTEGER NOT NULL,
    key       TEXT    NOT NULL,
    body      BLOB    NOT NULL,
    PRIMARY KEY (tenant_no, build, key)
) STRICT, WITHOUT ROWID;
