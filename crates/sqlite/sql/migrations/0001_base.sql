-- After it: the tables of a fresh store, no tenant, no view.
-- Locks: runs inside the one write transaction of opening a file.

-- One row: which file this is. A copy of the file keeps it; another file has another.
CREATE TABLE server (
    only   INTEGER NOT NULL PRIMARY KEY CHECK (only = 1),
    system TEXT    NOT NULL
) STRICT;

-- Numbers are never used twice, so that a number in a log line means one tenant for ever.
CREATE TABLE tenants (
    tenant_no INTEGER PRIMARY KEY AUTOINCREMENT,
    id        TEXT NOT NULL UNIQUE
) STRICT;

-- `moved` grows with every commit that changes a head: one number per commit, handed out under the write lock, so that
-- "everything above the largest number I saw" is exactly what I have not seen.
CREATE TABLE heads (
    tenant_no INTEGER NOT NULL PRIMARY KEY REFERENCES tenants,
    head      INTEGER NOT NULL CHECK (head >= 0),
    open      INTEGER NOT NULL,
    place     INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    moved     INTEGER NOT NULL
) STRICT;

CREATE INDEX heads_by_moved ON heads (moved);

-- Facts of a stream that rarely change; a stream without them has no row.
CREATE TABLE streams (
    tenant_no INTEGER NOT NULL,
    stream    TEXT    NOT NULL,
    archived  INTEGER NOT NULL,
    PRIMARY KEY (tenant_no, stream)
) STRICT, WITHOUT ROWID;

-- Clustered by tenant and sequence, so that a page is one walk. The body comes last: what only looks at sequence, type and
-- size never touches the pages it overflows to.
CREATE TABLE events (
    place     INTEGER NOT NULL,
    tenant_no INTEGER NOT NULL,
    seq       INTEGER NOT NULL CHECK (seq > 0),
    stream    TEXT    NOT NULL,
    version   INTEGER NOT NULL CHECK (version > 0),
    id        BLOB    NOT NULL,
    type      TEXT    NOT NULL,
    encoding  INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    size      INTEGER NOT NULL,
    headers   BLOB    NOT NULL,
    body      BLOB    NOT NULL,
    PRIMARY KEY (place, tenant_no, seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX events_by_stream ON events (place, tenant_no, stream, version);

CREATE TABLE append_ids (
    tenant_no INTEGER NOT NULL,
    id        BLOB    NOT NULL,
    digest    BLOB    NOT NULL,
    first     INTEGER NOT NULL,
    n         INTEGER NOT NULL,
    PRIMARY KEY (tenant_no, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE projections (
    projection_no INTEGER PRIMARY KEY AUTOINCREMENT,
    name          TEXT NOT NULL UNIQUE
) STRICT;

-- Each row has a table `view_<view_no>` of its own.
CREATE TABLE views (
    view_no INTEGER PRIMARY KEY AUTOINCREMENT,
    name    TEXT    NOT NULL,
    version INTEGER NOT NULL,
    UNIQUE (name, version)
) STRICT;

CREATE TABLE progress (
    tenant_no     INTEGER NOT NULL,
    projection_no INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    build         INTEGER NOT NULL,
    seq           INTEGER NOT NULL CHECK (seq >= 0),
    generation    INTEGER NOT NULL,
    owner         BLOB,
    PRIMARY KEY (tenant_no, projection_no, version, build)
) STRICT, WITHOUT ROWID;

CREATE TABLE dead_letters (
    tenant_no     INTEGER NOT NULL,
    projection_no INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    build         INTEGER NOT NULL,
    seq           INTEGER NOT NULL,
    member        TEXT    NOT NULL,
    event_id      BLOB    NOT NULL,
    event_type    TEXT    NOT NULL,
    class         TEXT    NOT NULL,
    reason        TEXT    NOT NULL,
    at            INTEGER NOT NULL,
    PRIMARY KEY (tenant_no, projection_no, version, build, seq, member)
) STRICT, WITHOUT ROWID;
