-- What workers or the broker do not take is refused: 1.0 for an int, strings that are no datetime, headers without a name.

-- Which signs are spaces depends on the database, and those that cannot be seen are neither spaces nor controls.
CREATE OR REPLACE FUNCTION faena.check_label(name text, label text) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF label !~ '^[^[:space:][:cntrl:]]{1,128}$'
        OR label ~ '[\u0080-\u00A0\u00AD\u061C\u1680\u180E\u2000-\u200F\u2028-\u202F\u205F-\u206F\u3000\uE000-\uF8FF\uFEFF\uFFF9-\uFFFB]'
    THEN
        RAISE EXCEPTION '% must have 1 to 128 printable characters and no spaces, got %', name, quote_literal(label);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION faena.check_headers(headers jsonb) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    name text;
    value jsonb;
BEGIN
    IF jsonb_typeof(headers) <> 'object' THEN
        RAISE EXCEPTION 'headers must be an object of strings, got %', jsonb_typeof(headers);
    ELSIF (SELECT count(*) FROM jsonb_object_keys(headers)) > 64 THEN
        RAISE EXCEPTION 'headers must be at most 64, got %', (SELECT count(*) FROM jsonb_object_keys(headers));
    END IF;
    FOR name, value IN SELECT * FROM jsonb_each(headers) LOOP
        PERFORM faena.check_label('header name', name);
        IF jsonb_typeof(value) <> 'string' OR length(value #>> '{}') > 4096 THEN
            RAISE EXCEPTION 'header % must be a string of at most 4096 characters', name;
        END IF;
    END LOOP;
END $$;

-- What a job has besides its payload, checked; refuses what no worker could run.
CREATE OR REPLACE FUNCTION faena.job_options(
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
    ELSIF expires <= coalesce(at, clock_timestamp() + delay) THEN
        RAISE EXCEPTION 'expires must be after the job becomes ready, got %', expires;
    END IF;
    PERFORM faena.check_label('tenant', tenant), faena.check_label('key', key), faena.check_headers(headers);
    RETURN jsonb_strip_nulls(jsonb_build_object(
        'at', faena.epoch_us('at', coalesce(at, clock_timestamp() + delay)),
        'expires', faena.epoch_us('expires', expires),
        'priority', priority,
        'headers', headers));
END $$;

-- `quick` cannot tell 1.0 from 1, so it is not asked about payloads that may have such a number.
CREATE FUNCTION faena.fits_at_a_glance(quick jsonpath, body json) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT strpos(body::text, '.0') = 0 AND jsonb_path_match(body::jsonb, quick, '{}', true)
$$;

CREATE OR REPLACE FUNCTION faena.number_errors(schema jsonb, value numeric, at text)
RETURNS SETOF text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF schema ->> 'format' = 'int' AND scale(value) > 0 THEN
        RETURN NEXT at || ' must be a whole number without a point, got ' || value;
    END IF;
    IF value < (schema ->> 'minimum')::numeric THEN
        RETURN NEXT at || ' must be at least ' || (schema ->> 'minimum') || ', got ' || value;
    ELSIF value <= (schema ->> 'exclusiveMinimum')::numeric THEN
        RETURN NEXT at || ' must be greater than ' || (schema ->> 'exclusiveMinimum') || ', got ' || value;
    END IF;
    IF value > (schema ->> 'maximum')::numeric THEN
        RETURN NEXT at || ' must be at most ' || (schema ->> 'maximum') || ', got ' || value;
    ELSIF value >= (schema ->> 'exclusiveMaximum')::numeric THEN
        RETURN NEXT at || ' must be less than ' || (schema ->> 'exclusiveMaximum') || ', got ' || value;
    END IF;
    IF (schema ->> 'multipleOf')::numeric <> 0 AND value % (schema ->> 'multipleOf')::numeric <> 0 THEN
        RETURN NEXT at || ' must be a multiple of ' || (schema ->> 'multipleOf') || ', got ' || value;
    END IF;
END $$;

-- Formats that are not known fit: a worker checks them.
CREATE OR REPLACE FUNCTION faena.is_of_format(format text, value text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    CASE format
        WHEN 'date-time' THEN
            RETURN value ~* '^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[-+]\d\d:?\d\d)?$' AND value::timestamptz IS NOT NULL;
        WHEN 'date' THEN RETURN value ~ '^\d{4}-\d\d-\d\d$' AND value::date IS NOT NULL;
        WHEN 'time' THEN RETURN value ~* '^\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[-+]\d\d:?\d\d)?$' AND value::timetz IS NOT NULL;
        WHEN 'uuid' THEN RETURN value::uuid IS NOT NULL;
        WHEN 'decimal' THEN
            RETURN value ~* '^\s*[-+]?((\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(e[-+]?\d+)?|inf(inity)?|s?nan\d*)\s*$';
        WHEN 'duration such as P1DT2H' THEN
            RETURN value ~* '^[-+]?P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+S)?)?$'
                OR value ~* '^[-+]?P(\d+\.\d+D|(\d+D)?T(\d+\.\d+H|(\d+H)?(\d+\.\d+M|(\d+M)?\d+\.\d+S)))$';
        WHEN 'base64 string' THEN
            RETURN value ~ '^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$' AND value !~ '\n';
        ELSE RETURN faena.is_of_time_format(format, value);
    END CASE;
EXCEPTION WHEN data_exception THEN
    RETURN false;
END $$;

-- A datetime or time of day as msgspec reads it, and the time zone that its type demands, forbids or leaves open.
CREATE FUNCTION faena.is_of_time_format(format text, value text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    clock text := '([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?';
    zone text := '(Z|[-+]([01]\d|2[0-3]):?[0-5]\d)';
BEGIN
    zone := CASE WHEN format LIKE '% with a time zone' THEN zone WHEN format LIKE '% without a time zone' THEN '' ELSE zone || '?' END;
    IF format LIKE 'datetime%' THEN
        RETURN value ~* ('^(?!0000)\d{4}-\d\d-\d\d[T ]' || clock || zone || '$') AND left(value, 10)::date IS NOT NULL;
    END IF;
    RETURN format NOT LIKE 'time of day%' OR value ~* ('^' || clock || zone || '$');
END $$;

-- Of a datetime or null, the text that is no datetime is at fault, and not that it is not null.
CREATE OR REPLACE FUNCTION faena.combined_errors(root jsonb, schema jsonb, value jsonb, path text, at text)
RETURNS SETOF text LANGUAGE plpgsql STABLE AS $$
DECLARE
    one jsonb;
    fitting integer := 0;
    tried text[];
    best text[];
    of_type text := at || ' must be %, got ' || faena.json_type(value);
BEGIN
    FOR one IN SELECT * FROM jsonb_array_elements(schema -> 'allOf') LOOP
        RETURN QUERY SELECT faena.schema_errors(root, one, value, path);
    END LOOP;
    IF NOT schema ?| ARRAY['anyOf', 'oneOf'] THEN
        RETURN;
    END IF;
    FOR one IN SELECT * FROM jsonb_array_elements(coalesce(schema -> 'anyOf', schema -> 'oneOf')) LOOP
        tried := ARRAY(SELECT faena.schema_errors(root, one, value, path));
        IF cardinality(tried) = 0 THEN
            fitting := fitting + 1;
        ELSIF best IS NULL OR tried[1] NOT LIKE of_type AND best[1] LIKE of_type THEN
            best := tried;  -- the alternative of the right type says more than the others
        END IF;
    END LOOP;
    IF fitting = 0 THEN
        RETURN QUERY SELECT unnest(best);
    ELSIF fitting > 1 AND schema ? 'oneOf' THEN
        RETURN NEXT at || ' must fit one alternative only';
    END IF;
END $$;

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
    ELSIF faena.fits_at_a_glance(declared.quick, body) THEN
        RETURN;
    END IF;
    wrong := ARRAY(SELECT faena.schema_errors(declared.schema, declared.schema, body::jsonb, '') LIMIT 20);
    IF cardinality(wrong) > 0 THEN
        RAISE EXCEPTION '%payload must be that of %/%, got % bad field%: %', at, declared.queue, declared.task,
            cardinality(wrong), CASE WHEN cardinality(wrong) > 1 THEN 's' ELSE '' END, array_to_string(wrong, '; ');
    END IF;
END $$;

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
            OR faena.fits_at_a_glance(declared.quick, one.body) IS NOT TRUE
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
