-- Archives: objects of rows that have left, or are leaving, their tables.
CREATE TABLE faena.archives (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    table_name text NOT NULL,            -- schema.table
    tenant_column text,                  -- NULL: rows of all tenants are together
    tenant text,                         -- NULL without a tenant column, or where it is NULL
    start_at timestamptz NOT NULL,       -- the period of the rows: a partition's, or a day, …
    end_at timestamptz NOT NULL,         -- … and the first instant after it
    first_at timestamptz NOT NULL,       -- the time of the oldest row
    last_at timestamptz NOT NULL,        -- the time of the newest row
    store text NOT NULL,                 -- the address of the directory or bucket
    key text NOT NULL,                   -- of the object
    rows bigint NOT NULL CHECK (rows > 0),
    raw_bytes bigint NOT NULL,           -- of its lines, before compression
    size bigint NOT NULL,                -- of the object in bytes
    sha256 text NOT NULL,                -- of the object
    digest numeric NOT NULL,             -- of its rows
    schema_digest text NOT NULL,         -- of the columns
    last_key text[] NOT NULL,            -- tenant, time and primary key of its last row
    state text NOT NULL CHECK
        (state IN ('writing', 'verified', 'archived', 'discarded', 'restored', 'erased')),
    created_at timestamptz NOT NULL DEFAULT now(),
    changed_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (store, key)
);
CREATE INDEX archives_of_table ON faena.archives (table_name, tenant, start_at);
CREATE INDEX archives_unfinished ON faena.archives (table_name, state)
    WHERE state IN ('writing', 'verified', 'discarded');
COMMENT ON COLUMN faena.archives.state IS
    'writing, verified: the rows are in the table. archived: only the object has them. discarded: the
object is to be removed, the rows are in the table. restored: the rows are in the table again.
erased: the object was removed for good.';

-- How long each table must be kept, as programs have said; protection is only lowered on purpose.
CREATE TABLE faena.retentions (
    table_name text PRIMARY KEY,
    keep text NOT NULL,                  -- '2y', '90d', 'forever'
    legal text,                          -- the least time by law, or 'forever'
    changed_at timestamptz NOT NULL DEFAULT now()
);

-- Who archives a table now: only the holder of the token may change it.
CREATE TABLE faena.archive_runs (
    table_name text PRIMARY KEY,
    token uuid NOT NULL,
    step text NOT NULL,
    start_at timestamptz,                -- the period it is at
    end_at timestamptz,
    detaching oid,                       -- a partition that is being detached, or is to be dropped
    rows bigint NOT NULL DEFAULT 0,      -- of this run
    objects bigint NOT NULL DEFAULT 0,
    problem text,
    started_at timestamptz NOT NULL DEFAULT now(),
    renewed_at timestamptz NOT NULL DEFAULT now(),
    ended_at timestamptz
);
