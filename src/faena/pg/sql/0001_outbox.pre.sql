-- The first migration.
SELECT 1;
