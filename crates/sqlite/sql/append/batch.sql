-- After it: nothing changed. One row per tenant of the batch, in the order asked; nulls where there is none: what the batch's
-- expectations are compared with. The last column is the change number that heads/advance.sql has to use.
-- Locks: none of its own. The caller's BEGIN IMMEDIATE is what locks every head of the file.
-- $1 tenant numbers, a JSON array
SELECT h.head, h.open, h.place, h.at, coalesce((SELECT max(moved) FROM heads), 0) + 1
  FROM json_each($1) a
  LEFT JOIN heads h ON h.tenant_no = a.value
 ORDER BY a.key;
