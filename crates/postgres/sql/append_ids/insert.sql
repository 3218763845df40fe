-- After it: a retry with one of these ids finds the first result.
-- Locks: runs in the transaction that locked the head.
-- $1 tenant; arrays: $2 id, $3 digest, $4 sequence of the first event, $5 events
INSERT INTO append_ids (tenant_no, id, digest, first, n)
SELECT $1, u.id, u.digest, u.first, u.n
  FROM unnest($2::uuid[], $3::bytea[], $4::int8[], $5::int8[]) AS u (id, digest, first, n);
