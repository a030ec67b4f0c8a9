-- The outbox keeps payloads as they were written, takes many jobs at once, and is read queue by queue.

ALTER TABLE faena.outbox ALTER COLUMN payload TYPE json USING payload::json;  -- jsonb reorders fields and rewrites numbers
ALTER TABLE faena.tasks ADD COLUMN quick jsonpath;  -- true for payloads that fit the schema for sure; NULL: look closely
CREATE INDEX outbox_waiting ON faena.outbox (queue, number) WHERE sent_at IS NULL AND refused IS NULL;

DROP FUNCTION faena.enqueue(text, text, jsonb, text, text, interval, timestamptz, timestamptz, integer, text, jsonb, text);
DROP FUNCTION faena.check_job(text, text, jsonb, text, text, integer, text, jsonb, text);

-- Enqueue a job in the caller's transaction; returns its id. `exact` instead of `payload` comes back byte for byte.
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
    durability text DEFAULT 'outbox',
    exact json DEFAULT NULL
) RETURNS text LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    declared faena.tasks := faena.declared(queue, task);
    given jsonb := faena.job_options(declared, tenant, key, delay, at, expires, priority, headers, durability);
    body json := coalesce(exact, payload::json);
    job text := coalesce(id, faena.new_id());
    known jsonb;
BEGIN
    PERFORM faena.check_label('id', id);
    PERFORM faena.check_payload(declared, body, '');
    IF id IS NULL THEN
        INSERT INTO faena.outbox (queue, id, task, payload, tenant, key, options, is_kept)
        VALUES (queue, job, task, body, tenant, key, given, durability = 'outbox');
    ELSE
        INSERT INTO faena.outbox (queue, id, task, payload, tenant, key, options, is_kept)
        VALUES (queue, job, task, body, tenant, key, given, durability = 'outbox')
        ON CONFLICT ON CONSTRAINT outbox_queue_id_key DO NOTHING;
        IF NOT FOUND THEN
            SELECT jsonb_build_array(one.task, one.payload::jsonb, one.tenant, one.key) INTO known
            FROM faena.outbox one WHERE one.queue = enqueue.queue AND one.id = job;
            IF known IS DISTINCT FROM jsonb_build_array(task, body::jsonb, tenant, key) THEN
                RAISE EXCEPTION 'id must be new, got %, which another job of queue % has', job, queue;
            END IF;
            RETURN job;
        END IF;
    END IF;
    PERFORM pg_notify('faena_outbox', '');
    RETURN job;
END $$;

-- Enqueue a job for each item of a JSON array, all with the same options; returns their ids, in order.
CREATE FUNCTION faena.enqueue_many(
    queue text,
    task text,
    payloads jsonb DEFAULT NULL,
    tenant text DEFAULT NULL,
    key text DEFAULT NULL,
    delay interval DEFAULT NULL,
    at timestamptz DEFAULT NULL,
    expires timestamptz DEFAULT NULL,
    priority integer DEFAULT NULL,
    headers jsonb DEFAULT NULL,
    durability text DEFAULT 'outbox',
    exact json DEFAULT NULL
) RETURNS SETOF text LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    declared faena.tasks := faena.declared(queue, task);
    given jsonb := faena.job_options(declared, tenant, key, delay, at, expires, priority, headers, durability);
    list json := coalesce(exact, payloads::json);
    bodies json[];
    item record;
BEGIN
    IF json_typeof(list) IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'payloads must be a JSON array, one item for each job, got %', coalesce(json_typeof(list), 'NULL');
    END IF;
    bodies := ARRAY(SELECT json_array_elements(list));
    FOR item IN
        SELECT one.body, one.number FROM unnest(bodies) WITH ORDINALITY AS one (body, number)
        WHERE octet_length(one.body::text) > declared.payload_limit
            OR jsonb_path_match(one.body::jsonb, declared.quick, '{}', true) IS NOT TRUE
    LOOP
        PERFORM faena.check_payload(declared, item.body, format('item %s of the list: ', item.number - 1));
    END LOOP;
    RETURN QUERY
        INSERT INTO faena.outbox AS made (queue, id, task, payload, tenant, key, options, is_kept)
        SELECT queue, faena.new_id(), task, one.body, tenant, key, given, durability = 'outbox'
        FROM unnest(bodies) WITH ORDINALITY AS one (body, number) ORDER BY one.number
        RETURNING made.id;
    PERFORM pg_notify('faena_outbox', '');
END $$;

-- The task that a program has declared.
CREATE FUNCTION faena.declared(queue text, task text) RETURNS faena.tasks LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_variable
DECLARE
    found_task faena.tasks;
BEGIN
    SELECT * INTO found_task FROM faena.tasks one WHERE one.queue = declared.queue AND one.task = declared.task;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'task must be one that a program has declared, got %/%; declared are %', queue, task,
            coalesce((SELECT string_agg(one.queue || '/' || one.task, ', ' ORDER BY one.queue, one.task)
                      FROM faena.tasks one), 'none: start a worker, or run `faena pg publish`');
    END IF;
    RETURN found_task;
END $$;

-- What a job has besides its payload, checked; refuses what no worker could run.
CREATE FUNCTION faena.job_options(
    declared faena.tasks, tenant text, key text, delay interval, at timestamptz, expires timestamptz,
    priority integer, headers jsonb, durability text
) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    IF durability NOT IN ('outbox', 'broker') OR durability IS NULL THEN
        RAISE EXCEPTION 'durability must be outbox or broker, got %', durability;
    ELSIF declared.needs_tenant AND tenant IS NULL THEN
        RAISE EXCEPTION 'tenant must be given: queue % orders its jobs by tenant', declared.queue;
    ELSIF declared.needs_key AND key IS NULL THEN
        RAISE EXCEPTION 'key must be given: queue % orders its jobs by key', declared.queue;
    ELSIF num_nulls(tenant, key, delay, at, expires, priority, headers) = 7 THEN
        RETURN '{}';
    ELSIF priority NOT BETWEEN 1 AND 100 THEN
        RAISE EXCEPTION 'priority must be 1 to 100, got %', priority;
    ELSIF delay IS NOT NULL AND at IS NOT NULL THEN
        RAISE EXCEPTION 'delay and at must not both be given';
    ELSIF delay < interval '0' THEN
        RAISE EXCEPTION 'delay must not be negative, got %', delay;
    END IF;
    PERFORM faena.check_label('tenant', tenant), faena.check_label('key', key), faena.check_headers(headers);
    RETURN jsonb_strip_nulls(jsonb_build_object(
        'at', faena.epoch_us('at', coalesce(at, clock_timestamp() + delay)),
        'expires', faena.epoch_us('expires', expires),
        'priority', priority,
        'headers', headers));
END $$;

-- An instant as the broker counts it; jobs cannot wait for later ones.
CREATE FUNCTION faena.epoch_us(name text, instant timestamptz) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    IF instant >= '2112-01-01 00:00+00' OR instant = '-infinity' THEN
        RAISE EXCEPTION '% must be before the year 2112, got %', name, instant;
    END IF;
    RETURN greatest(1, extract(epoch FROM instant) * 1000000)::bigint;
END $$;

-- Refuse a payload that does not fit; `quick` is tried first, because the schema is read slowly.
CREATE FUNCTION faena.check_payload(declared faena.tasks, body json, at text) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    size integer := octet_length(body::text);
    wrong text[];
BEGIN
    IF body IS NULL THEN
        RAISE EXCEPTION '%payload must be JSON, got NULL: write ''null''::jsonb for none', at;
    ELSIF size > declared.payload_limit THEN
        RAISE EXCEPTION '%payload must have at most % bytes, got %', at, declared.payload_limit, size;
    ELSIF jsonb_path_match(body::jsonb, declared.quick, '{}', true) THEN
        RETURN;
    END IF;
    wrong := ARRAY(SELECT faena.schema_errors(declared.schema, declared.schema, body::jsonb, '') LIMIT 20);
    IF cardinality(wrong) > 0 THEN
        RAISE EXCEPTION '%payload must be that of %/%, got % bad field%: %', at, declared.queue, declared.task,
            cardinality(wrong), CASE WHEN cardinality(wrong) > 1 THEN 's' ELSE '' END, array_to_string(wrong, '; ');
    END IF;
END $$;

-- The next jobs for the broker, locked for the one relay that works; a row of NULLs if another does.
-- `known` lists queues as [name, [task, …]]; with null instead of tasks, every task of the queue. No more than `most`
-- jobs and `bytes` of payloads, but one at least; `is_more` says that there are others.
CREATE FUNCTION faena.take(known jsonb, most integer, bytes bigint, frozen text) RETURNS TABLE (
    number bigint, queue text, id text, task text, payload text, tenant text, key text, options text, is_kept boolean,
    is_more boolean
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('idle_in_transaction_session_timeout', frozen, true);
    IF NOT pg_try_advisory_xact_lock(122549820550008) THEN
        RETURN NEXT;
        RETURN;
    END IF;
    RETURN QUERY
        WITH found AS MATERIALIZED (
            SELECT one.* FROM jsonb_array_elements(known) WITH ORDINALITY AS asked (queue, place), LATERAL (
                SELECT job.number, job.queue, job.id, job.task, job.payload::text AS payload, job.tenant, job.key,
                    job.options::text AS options, job.is_kept, asked.place
                FROM faena.outbox job
                WHERE job.sent_at IS NULL AND job.refused IS NULL AND job.queue = asked.queue ->> 0
                    AND (asked.queue -> 1 = 'null' OR asked.queue -> 1 ? job.task)
                ORDER BY job.number LIMIT most FOR UPDATE SKIP LOCKED
            ) AS one LIMIT most
        ), weighed AS (
            SELECT *, row_number() OVER rows AS nth, sum(octet_length(payload)) OVER rows AS size, count(*) OVER () AS total
            FROM found WINDOW rows AS (ORDER BY place, number)
        ), light AS (
            SELECT *, count(*) OVER () AS taken FROM weighed WHERE nth = 1 OR size <= bytes
        )
        SELECT number, queue, id, task, payload, tenant, key, options, is_kept, taken < total OR total = most
        FROM light ORDER BY place, number;
END $$;
