-- How far retention has removed rows of each table: what is computed from rows before that would
-- lack them. Written in the transaction in which they leave.
CREATE TABLE faena.removals (
    table_name text NOT NULL,            -- schema.table
    by_column text NOT NULL,             -- a column with a time
    before timestamptz NOT NULL,         -- rows with an earlier time in it may be gone
    relation oid NOT NULL,               -- the table that had the name …
    home oid NOT NULL,                   -- … while faena.removals had this oid: a copy has others
    changed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (table_name, by_column)
);

-- What a roll-up reads, so that whoever removes rows knows of it, in any program.
ALTER TABLE faena.rollups
    ADD COLUMN source text,              -- schema.table
    ADD COLUMN by_column text;
