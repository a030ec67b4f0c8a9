-- Effects of jobs that share an id are told apart, and payloads that no worker can read are refused.

ALTER TABLE faena.effects
    ADD COLUMN digest text NOT NULL DEFAULT '',           -- of namespace, tenant and payload; '': of an earlier release
    ADD COLUMN is_whole boolean NOT NULL DEFAULT true;    -- false: its handler has committed, and then failed
ALTER TABLE faena.effects DROP CONSTRAINT effects_pkey, ADD PRIMARY KEY (queue, job, digest);

-- Refuse a payload that does not fit; `quick` is tried first, because the schema is read slowly.
CREATE OR REPLACE FUNCTION faena.check_payload(declared faena.tasks, body json, at text) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    size integer := octet_length(body::text);
    wrong text[];
BEGIN
    IF body IS NULL THEN
        RAISE EXCEPTION '%payload must be JSON, got NULL: write ''null''::jsonb for none', at;
    ELSIF size > declared.payload_limit THEN
        RAISE EXCEPTION '%payload must have at most % bytes, got %', at, declared.payload_limit, size;
    ELSIF faena.unreadable(body) IS NOT NULL THEN
        RAISE EXCEPTION '%payload must %', at, faena.unreadable(body);
    ELSIF jsonb_path_match(body::jsonb, declared.quick, '{}', true) THEN
        RETURN;
    END IF;
    wrong := ARRAY(SELECT faena.schema_errors(declared.schema, declared.schema, body::jsonb, '') LIMIT 20);
    IF cardinality(wrong) > 0 THEN
        RAISE EXCEPTION '%payload must be that of %/%, got % bad field%: %', at, declared.queue, declared.task,
            cardinality(wrong), CASE WHEN cardinality(wrong) > 1 THEN 's' ELSE '' END, array_to_string(wrong, '; ');
    END IF;
END $$;

-- What a payload must be for workers to read it; NULL if it is. Most are too short to be nested deeply.
CREATE FUNCTION faena.unreadable(body json) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN octet_length(body::text) <= 1000
            OR length(body::text) - length(translate(body::text, '[{', '')) <= 500 THEN NULL
        WHEN jsonb_path_exists(body::jsonb, 'strict $.**{500} ? (@.type() == "array" || @.type() == "object")')
            THEN 'have at most 500 levels, got more' END
$$;

-- Enqueue a job for each item of a JSON array, all with the same options; returns their ids, in order.
CREATE OR REPLACE FUNCTION faena.enqueue_many(
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
            OR faena.unreadable(one.body) IS NOT NULL
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
