-- After it: a retry with this id finds the first result.
-- Locks: runs in the write transaction of the append.
-- $1 tenant, $2 id, $3 digest, $4 sequence of the first event, $5 events
INSERT INTO append_ids (tenant_no, id, digest, first, n)
VALUES ($1, $2, $3, $4, $5);
