-- Roll-ups: the tables that faena fills with aggregates, and how far a back-fill is.
CREATE TABLE faena.rollups (
    name text PRIMARY KEY,             -- schema.table of the aggregates
    digest text NOT NULL,              -- of what was declared; another one is another roll-up
    sealed_before date,                -- periods that begin earlier are never computed again
    backfill_first date,
    backfill_last date,
    backfill_next date,                -- the next period; NULL when all are done
    ran_at timestamptz
);
COMMENT ON TABLE faena.rollups IS
    'One row for each table of aggregates that faena fills: back-fill and seal';
