-- Conversions of plain tables into partitioned ones: how far each of them is.
CREATE TABLE faena.conversions (
    table_name text PRIMARY KEY,
    step text NOT NULL
        CHECK (step IN ('preparing', 'copying', 'copied', 'swapped', 'finished', 'cancelling')),
    by_column text NOT NULL,
    every text NOT NULL,
    low date,
    high date,
    last_key text[],
    copied bigint NOT NULL DEFAULT 0,
    total bigint NOT NULL DEFAULT 0,
    verified date[] NOT NULL DEFAULT '{}',
    verified_at timestamptz,
    triggers jsonb NOT NULL DEFAULT '[]',
    index_names text[] NOT NULL DEFAULT '{}',
    started_at timestamptz NOT NULL DEFAULT now(),
    changed_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE faena.conversions IS
    'One row for each table that faena converts: the step, the last key copied, the ranges verified';
