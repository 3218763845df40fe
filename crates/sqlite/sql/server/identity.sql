-- After it: nothing changed. One row: which file answers.
-- Locks: none.
SELECT system
  FROM server;
