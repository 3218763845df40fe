-- After it: these events of one tenant are in the log.
-- Locks: runs in the transaction that locked the head and moved it with heads/advance.sql.
-- $1 place, $2 tenant, $3 time; arrays: $4 seq, $5 stream, $6 version, $7 id, $8 type, $9 encoding, $10 size, $11 headers,
-- $12 body
INSERT INTO events (place, tenant_no, at, seq, stream, version, id, type, encoding, size, headers, body)
SELECT $1, $2, $3, e.seq, e.stream, e.version, e.id, e.type, e.encoding, e.size, e.headers, e.body
  FROM unnest($4::int8[], $5::text[], $6::int8[], $7::uuid[], $8::text[], $9::int2[], $10::int4[], $11::bytea[], $12::bytea[])
       AS e (seq, stream, version, id, type, encoding, size, headers, body);
