-- What protects a table also when it is renamed, or when its age is read from another column.
ALTER TABLE faena.retentions
    ADD COLUMN by_column text,           -- by which rows were protected; NULL: not decided yet
    ADD COLUMN relations oid[] NOT NULL DEFAULT '{}', -- the tables that had the name …
    ADD COLUMN home oid;                 -- … while faena.retentions had this oid: a copy has others

-- Of which columns last_key is: an export continues only in the same order.
ALTER TABLE faena.archives ADD COLUMN key_columns text[];
