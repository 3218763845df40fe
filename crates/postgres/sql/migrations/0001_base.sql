-- After it: the tables of a fresh store, no tenant, no view; the shared places 0 to 15 of the events.
-- Locks: runs in one transaction under the advisory lock of migrations, so that two programs that open a fresh database at
-- once do not meet.
-- Text compares byte for byte: names that differ in case or in Unicode normal form are different names.

CREATE TABLE tenants (
    tenant_no int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id        text COLLATE "C" NOT NULL UNIQUE
);

-- The first and only lock of an append. No index on a column that moves, and room on each page, so that every advance is a
-- heap-only update. `at` is in microseconds; `xid` is the transaction that last touched the row, which discovery follows.
CREATE TABLE heads (
    tenant_no int4 PRIMARY KEY REFERENCES tenants,
    head      int8 NOT NULL CHECK (head >= 0),
    open      bool NOT NULL,
    place     int4 NOT NULL,
    at        int8 NOT NULL,
    xid       xid8 NOT NULL
) WITH (fillfactor = 30);

-- Facts of a stream that rarely change; a stream without them has no row.
CREATE TABLE streams (
    tenant_no int4 NOT NULL,
    stream    text COLLATE "C" NOT NULL,
    archived  bool NOT NULL,
    PRIMARY KEY (tenant_no, stream)
);

CREATE TABLE events (
    place     int4 NOT NULL,
    tenant_no int4 NOT NULL,
    seq       int8 NOT NULL CHECK (seq > 0),
    version   int8 NOT NULL CHECK (version > 0),
    at        int8 NOT NULL,
    id        uuid NOT NULL,
    size      int4 NOT NULL,
    encoding  int2 NOT NULL,
    stream    text COLLATE "C" NOT NULL,
    type      text COLLATE "C" NOT NULL,
    headers   bytea COMPRESSION lz4 NOT NULL,
    body      bytea COMPRESSION lz4 NOT NULL,
    PRIMARY KEY (place, tenant_no, seq),
    UNIQUE (place, tenant_no, stream, version)
) PARTITION BY LIST (place);

-- LIKE and ATTACH, never PARTITION OF: that one locks the parent against every reader.
DO $$
BEGIN
    FOR place IN 0..15 LOOP
        EXECUTE format('CREATE TABLE events_p%s (LIKE events INCLUDING ALL)', place);
        EXECUTE format('ALTER TABLE events ATTACH PARTITION events_p%s FOR VALUES IN (%s)', place, place);
    END LOOP;
END
$$;

CREATE TABLE append_ids (
    tenant_no int4 NOT NULL,
    id        uuid NOT NULL,
    digest    bytea NOT NULL,
    first     int8 NOT NULL,
    n         int8 NOT NULL,
    PRIMARY KEY (tenant_no, id)
);

CREATE TABLE projections (
    projection_no int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name          text COLLATE "C" NOT NULL UNIQUE
);

-- Each row has a table `view_<view_no>` of its own.
CREATE TABLE views (
    view_no int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name    text COLLATE "C" NOT NULL,
    version int8 NOT NULL,
    UNIQUE (name, version)
);

CREATE TABLE progress (
    tenant_no     int4 NOT NULL,
    projection_no int4 NOT NULL,
    version       int8 NOT NULL,
    build         int4 NOT NULL,
    seq           int8 NOT NULL CHECK (seq >= 0),
    generation    int8 NOT NULL,
    owner         uuid,
    PRIMARY KEY (tenant_no, projection_no, version, build)
) WITH (fillfactor = 50);

CREATE TABLE dead_letters (
    tenant_no     int4 NOT NULL,
    projection_no int4 NOT NULL,
    version       int8 NOT NULL,
    build         int4 NOT NULL,
    seq           int8 NOT NULL,
    member        text COLLATE "C" NOT NULL,
    event_id      uuid NOT NULL,
    event_type    text COLLATE "C" NOT NULL,
    class         text NOT NULL,
    reason        text NOT NULL,
    at            int8 NOT NULL,
    PRIMARY KEY (tenant_no, projection_no, version, build, seq, member)
);
