-- The history of jobs: one row for each end of each job, in partitions by `finished_at`.
CREATE TABLE faena.history (
    id text COLLATE "C" NOT NULL,
    queue text NOT NULL,
    finished_at timestamptz NOT NULL,
    state text NOT NULL CHECK (state IN (
        'completed', 'dead', 'cancelled', 'expired', 'removed', 'replaced', 'discarded', 'resolved')),
    task text NOT NULL,
    tenant text,
    key text,
    priority integer NOT NULL,
    attempts integer NOT NULL,
    losses integer NOT NULL,
    enqueued_at timestamptz,
    started_at timestamptz,        -- of its last attempt
    wait_us bigint,                -- from enqueued_at to started_at
    run_us bigint,                 -- from started_at to finished_at
    worker text,
    error text,                    -- the name of what it failed with last
    code text,
    message text,
    origin text NOT NULL,          -- the first job of its line of retries
    retry_of text,
    flow text,                     -- queue/id
    "group" text,
    payload jsonb,
    result jsonb,
    PRIMARY KEY (id, queue, finished_at)
) PARTITION BY RANGE (finished_at);
CREATE INDEX history_finished_at ON faena.history (finished_at, id);
CREATE INDEX history_queue ON faena.history (queue, finished_at, id);
CREATE INDEX history_tenant ON faena.history (tenant, finished_at, id) WHERE tenant IS NOT NULL;

-- Shards whose history was read: how far, and what was stored.
CREATE TABLE faena.history_shards (
    namespace text NOT NULL,
    shard text NOT NULL,
    entry text NOT NULL DEFAULT '0-0',   -- the last one that was stored
    stored bigint NOT NULL DEFAULT 0,
    finished_until timestamptz,
    read_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (namespace, shard)
);

-- Jobs that have ended and have no row: there was no room for them, or no partition.
CREATE TABLE faena.history_gaps (
    namespace text NOT NULL,
    shard text NOT NULL,
    entry text NOT NULL,
    reason text NOT NULL CHECK (reason IN ('room', 'time')),
    jobs bigint NOT NULL,
    since timestamptz NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (namespace, shard, entry, reason)
);

-- Tenants whose rows were deleted: nothing that ended before comes in afterwards.
CREATE TABLE faena.history_erasures (
    tenant bytea PRIMARY KEY,      -- SHA-256 of its name
    until timestamptz NOT NULL
);
