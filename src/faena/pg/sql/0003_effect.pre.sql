-- Effects: which jobs have committed what they do, with what they returned.
CREATE TABLE faena.effects (
    queue text NOT NULL,
    job text NOT NULL,             -- the first of its line of retries
    attempt integer NOT NULL,
    result bytea,                  -- JSON; NULL for none
    committed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (queue, job)
);
CREATE INDEX effects_committed_at ON faena.effects (committed_at);
