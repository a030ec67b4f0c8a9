-- What a tenant asked for of its archives: each request, and the file that answers it.
CREATE TABLE faena.retrievals (
    id text PRIMARY KEY,
    tenant text NOT NULL,
    table_name text NOT NULL,            -- schema.table
    start_at timestamptz NOT NULL,       -- rows from this instant …
    end_at timestamptz NOT NULL,         -- … and before this one
    state text NOT NULL DEFAULT 'waiting' CHECK
        (state IN ('waiting', 'ready', 'failed', 'expired', 'erased')),
    token uuid,                          -- of the attempt that works at it: no other may end it
    store text,                          -- the address of the directory or bucket
    keys text[] NOT NULL DEFAULT '{}',   -- of each attempt's file; the last one counts
    rows bigint,
    size bigint,                         -- of the file in bytes
    sha256 text,                         -- of the file
    problem text,
    requested_at timestamptz NOT NULL DEFAULT now(),
    changed_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz               -- the file is deleted then
);
CREATE UNIQUE INDEX retrievals_wanted ON faena.retrievals (tenant, table_name, start_at, end_at)
    WHERE state IN ('waiting', 'ready');
CREATE INDEX retrievals_tenant ON faena.retrievals (tenant);

-- Requests to erase all data of a tenant: who asked, how far it is, what was erased and what is kept.
CREATE TABLE faena.erasures (
    id text PRIMARY KEY,
    tenant text NOT NULL,
    requested_by text NOT NULL,
    reason text NOT NULL,
    cancels_live boolean NOT NULL,       -- whether its live jobs are cancelled, or waited for
    state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'done')),
    step text NOT NULL DEFAULT 'waiting',
    erased jsonb NOT NULL DEFAULT '{}',  -- numbers by place
    kept jsonb NOT NULL DEFAULT '[]',    -- what a law protects: place, number, reason, until
    problem text,                        -- why it is not done yet
    requested_at timestamptz NOT NULL DEFAULT now(),
    changed_at timestamptz NOT NULL DEFAULT now(),
    done_at timestamptz
);
CREATE UNIQUE INDEX erasures_waiting ON faena.erasures (tenant) WHERE state = 'waiting';
CREATE INDEX erasures_tenant ON faena.erasures (tenant, requested_at);

-- Whose effects they are.
ALTER TABLE faena.effects ADD COLUMN tenant text;
CREATE INDEX effects_tenant ON faena.effects (tenant) WHERE tenant IS NOT NULL;
CREATE INDEX outbox_tenant ON faena.outbox (tenant) WHERE tenant IS NOT NULL;
