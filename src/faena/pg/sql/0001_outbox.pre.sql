-- The outbox: jobs that were enqueued in a transaction, until the broker has them, or has settled them.

CREATE TABLE faena.identity (
    name text PRIMARY KEY CHECK (name ~ '^[0-9a-f]{12}$'),  -- what jobs call this database by
    broker text,                                             -- the servers that jobs were sent to last
    is_late boolean NOT NULL DEFAULT false                   -- whether it was told that jobs wait for long
);
INSERT INTO faena.identity (name) VALUES (substr(replace(gen_random_uuid()::text, '-', ''), 1, 12));

-- What programs declare: tasks, and what their payloads must be.
CREATE TABLE faena.tasks (
    queue text NOT NULL,
    task text NOT NULL,
    schema jsonb,                  -- JSON Schema of the payload; NULL: any JSON
    payload_limit integer NOT NULL,
    needs_tenant boolean NOT NULL, -- its queue orders jobs by tenant, or by key
    needs_key boolean NOT NULL,
    declared_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (queue, task)
);

CREATE TABLE faena.outbox (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue text NOT NULL,
    id text NOT NULL,
    task text NOT NULL,
    payload jsonb NOT NULL,
    tenant text,
    key text,
    options jsonb NOT NULL,
    is_kept boolean NOT NULL,      -- until the job is settled, so that a lost broker can be refilled
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    sent_at timestamptz,
    refused text,                  -- why the broker never takes it
    UNIQUE (queue, id)
);
CREATE INDEX outbox_pending ON faena.outbox (number) WHERE sent_at IS NULL AND refused IS NULL;
CREATE INDEX outbox_refused ON faena.outbox (number) WHERE refused IS NOT NULL;

-- Enqueue a job in the caller's transaction; returns its id.
CREATE FUNCTION faena.enqueue(
    queue text,
    task text,
    payload jsonb DEFAULT 'null',
    tenant text DEFAULT NULL,
    key text DEFAULT NULL,
    delay interval DEFAULT NULL,
    at timestamptz DEFAULT NULL,
    expires timestamptz DEFAULT NULL,
    priority integer DEFAULT NULL,
    id text DEFAULT NULL,
    headers jsonb DEFAULT NULL,
    durability text DEFAULT 'outbox'
) RETURNS text LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    job text := coalesce(id, faena.new_id());
    known jsonb;
    given jsonb;
    added bigint;
BEGIN
    PERFORM faena.check_job(queue, task, payload, tenant, key, priority, job, headers, durability);
    IF delay IS NOT NULL AND at IS NOT NULL THEN
        RAISE EXCEPTION 'delay and at must not both be given';
    END IF;
    given := jsonb_strip_nulls(jsonb_build_object(
        'at', coalesce(extract(epoch FROM coalesce(at, clock_timestamp() + delay)) * 1000000, NULL)::bigint,
        'expires', (extract(epoch FROM expires) * 1000000)::bigint,
        'priority', priority,
        'headers', headers));
    INSERT INTO faena.outbox (queue, id, task, payload, tenant, key, options, is_kept)
    VALUES (queue, job, task, payload, tenant, key, given, durability = 'outbox')
    ON CONFLICT ON CONSTRAINT outbox_queue_id_key DO NOTHING
    RETURNING number INTO added;
    IF added IS NULL THEN
        SELECT jsonb_build_array(one.task, one.payload, one.tenant, one.key) INTO known
        FROM faena.outbox one WHERE one.queue = enqueue.queue AND one.id = job;
        IF known IS DISTINCT FROM jsonb_build_array(task, payload, tenant, key) THEN
            RAISE EXCEPTION 'id must be new, got %, which another job of queue % has', job, queue;
        END IF;
        RETURN job;
    END IF;
    NOTIFY faena_outbox;
    RETURN job;
END $$;

-- Ids sort by time, as those of the library do.
CREATE FUNCTION faena.new_id() RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
        || substr(replace(gen_random_uuid()::text, '-', ''), 1, 16)
$$;

-- Refuse what no worker could run.
CREATE FUNCTION faena.check_job(
    queue text, task text, payload jsonb, tenant text, key text, priority integer, id text,
    headers jsonb, durability text
) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    declared faena.tasks;
    wrong text[];
BEGIN
    SELECT * INTO declared FROM faena.tasks one WHERE one.queue = check_job.queue AND one.task = check_job.task;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'task must be one that a program has declared, got %/%; declared are %', queue, task,
            coalesce((SELECT string_agg(one.queue || '/' || one.task, ', ' ORDER BY one.queue, one.task)
                      FROM faena.tasks one), 'none: start a worker, or run `faena pg publish`');
    ELSIF durability NOT IN ('outbox', 'broker') THEN
        RAISE EXCEPTION 'durability must be outbox or broker, got %', durability;
    ELSIF payload IS NULL THEN
        RAISE EXCEPTION 'payload must be JSON, got NULL: write ''null''::jsonb for none';
    ELSIF declared.needs_tenant AND tenant IS NULL THEN
        RAISE EXCEPTION 'tenant must be given: queue % orders its jobs by tenant', queue;
    ELSIF declared.needs_key AND key IS NULL THEN
        RAISE EXCEPTION 'key must be given: queue % orders its jobs by key', queue;
    ELSIF priority IS NOT NULL AND priority NOT BETWEEN 1 AND 100 THEN
        RAISE EXCEPTION 'priority must be 1 to 100, got %', priority;
    ELSIF octet_length(payload::text) > declared.payload_limit THEN
        RAISE EXCEPTION 'payload must have at most % bytes, got %', declared.payload_limit, octet_length(payload::text);
    END IF;
    PERFORM faena.check_label('id', id), faena.check_label('tenant', tenant), faena.check_label('key', key);
    PERFORM faena.check_headers(headers);
    wrong := ARRAY(SELECT faena.schema_errors(declared.schema, declared.schema, payload, '') LIMIT 20);
    IF cardinality(wrong) > 0 THEN
        RAISE EXCEPTION 'payload must be that of %/%, got % bad field%: %', queue, task, cardinality(wrong),
            CASE WHEN cardinality(wrong) > 1 THEN 's' ELSE '' END, array_to_string(wrong, '; ');
    END IF;
END $$;

CREATE FUNCTION faena.check_label(name text, label text) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF label !~ '^[^[:space:][:cntrl:]]{1,128}$' THEN
        RAISE EXCEPTION '% must have 1 to 128 printable characters and no spaces, got %', name, quote_literal(label);
    END IF;
END $$;

CREATE FUNCTION faena.check_headers(headers jsonb) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    name text;
    value jsonb;
BEGIN
    IF jsonb_typeof(headers) <> 'object' THEN
        RAISE EXCEPTION 'headers must be an object of strings, got %', jsonb_typeof(headers);
    END IF;
    FOR name, value IN SELECT * FROM jsonb_each(headers) LOOP
        IF jsonb_typeof(value) <> 'string' OR length(value #>> '{}') > 4096 THEN
            RAISE EXCEPTION 'header % must be a string of at most 4096 characters', name;
        END IF;
    END LOOP;
END $$;
