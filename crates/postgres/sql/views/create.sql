-- After it: the view's table exists. Keys compare byte for byte.
-- Locks: runs under the advisory lock of registrations, in the transaction that registered the view with views/ensure.sql.
CREATE TABLE IF NOT EXISTS {view} (
    tenant_no int4  NOT NULL,
    build     int4  NOT NULL,
    key       text  COLLATE "C" NOT NULL,
    body      bytea COMPRESSION lz4 NOT NULL,
    PRIMARY KEY (tenant_no, build, key)
);
