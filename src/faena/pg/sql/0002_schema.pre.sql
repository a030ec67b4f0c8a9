-- JSON Schema (2020-12), as far as it describes payloads: what pydantic, msgspec and dataclasses make of their types.

-- What is wrong with a value, each with its path; nothing for one that fits. `root` has the definitions.
CREATE FUNCTION faena.schema_errors(root jsonb, schema jsonb, value jsonb, path text)
RETURNS SETOF text LANGUAGE plpgsql STABLE AS $$
DECLARE
    at text := CASE WHEN path = '' THEN '$' ELSE path END;
    kind text := faena.json_type(value);
BEGIN
    IF schema IS NULL OR schema = 'true' THEN
        RETURN;
    ELSIF schema = 'false' THEN
        RETURN NEXT at || ' must not be given';
        RETURN;
    END IF;
    IF schema ? '$ref' THEN
        RETURN QUERY SELECT faena.schema_errors(root, faena.schema_ref(root, schema ->> '$ref'), value, path);
    END IF;
    IF schema ? 'type' AND NOT faena.is_of_type(schema -> 'type', value) THEN
        RETURN NEXT at || ' must be ' || faena.type_words(schema -> 'type') || ', got ' || kind;
        RETURN;
    END IF;
    IF schema ? 'const' AND schema -> 'const' <> value THEN
        RETURN NEXT at || ' must be ' || (schema -> 'const')::text;
    ELSIF schema ? 'enum' AND NOT schema -> 'enum' @> jsonb_build_array(value) THEN
        RETURN NEXT at || ' must be one of ' || (SELECT string_agg(one::text, ', ') FROM jsonb_array_elements(schema -> 'enum') one);
    END IF;
    RETURN QUERY SELECT faena.combined_errors(root, schema, value, path, at);
    CASE jsonb_typeof(value)
        WHEN 'object' THEN RETURN QUERY SELECT faena.object_errors(root, schema, value, path, at);
        WHEN 'array' THEN RETURN QUERY SELECT faena.array_errors(root, schema, value, path, at);
        WHEN 'string' THEN RETURN QUERY SELECT faena.string_errors(schema, value #>> '{}', at);
        WHEN 'number' THEN RETURN QUERY SELECT faena.number_errors(schema, (value #>> '{}')::numeric, at);
        ELSE NULL;
    END CASE;
END $$;

CREATE FUNCTION faena.json_type(value jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN jsonb_typeof(value) = 'number' AND (value #>> '{}')::numeric % 1 = 0 THEN 'integer'
                ELSE jsonb_typeof(value) END
$$;

-- An integer is a number, too.
CREATE FUNCTION faena.is_of_type(types jsonb, value jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE jsonb_typeof(types) WHEN 'array' THEN types ELSE jsonb_build_array(types) END
        ?| ARRAY[faena.json_type(value), jsonb_typeof(value)]
$$;

CREATE FUNCTION faena.type_words(types jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT string_agg(CASE WHEN one ~ '^[aio]' THEN 'an ' WHEN one = 'null' THEN '' ELSE 'a ' END || one, ' or ')
    FROM jsonb_array_elements_text(CASE jsonb_typeof(types) WHEN 'array' THEN types ELSE jsonb_build_array(types) END) one
$$;

-- `#/$defs/Invoice` and the like; the parts are escaped as in a URL and a JSON pointer.
CREATE FUNCTION faena.schema_ref(root jsonb, ref text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    parts text[] := ARRAY(
        SELECT replace(replace(one, '~1', '/'), '~0', '~')
        FROM unnest(string_to_array(ltrim(ref, '#/'), '/')) one);
BEGIN
    RETURN root #> parts;
END $$;

CREATE FUNCTION faena.combined_errors(root jsonb, schema jsonb, value jsonb, path text, at text)
RETURNS SETOF text LANGUAGE plpgsql STABLE AS $$
DECLARE
    one jsonb;
    fitting integer := 0;
    tried text[];
    best text[];
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
        ELSIF best IS NULL OR tried[1] NOT LIKE at || ' must be a%' AND best[1] LIKE at || ' must be a%' THEN
            best := tried;  -- the alternative of the right type says more than the others
        END IF;
    END LOOP;
    IF fitting = 0 THEN
        RETURN QUERY SELECT unnest(best);
    ELSIF fitting > 1 AND schema ? 'oneOf' THEN
        RETURN NEXT at || ' must fit one alternative only';
    END IF;
END $$;

CREATE FUNCTION faena.object_errors(root jsonb, schema jsonb, value jsonb, path text, at text)
RETURNS SETOF text LANGUAGE plpgsql STABLE AS $$
DECLARE
    name text;
    field jsonb;
    declared jsonb := coalesce(schema -> 'properties', '{}');
    prefix text := CASE WHEN path = '' THEN '' ELSE path || '.' END;
BEGIN
    FOR name IN SELECT * FROM jsonb_array_elements_text(schema -> 'required') LOOP
        IF NOT value ? name THEN
            RETURN NEXT prefix || name || ' is required';
        END IF;
    END LOOP;
    FOR name, field IN SELECT * FROM jsonb_each(value) LOOP
        IF declared ? name THEN
            RETURN QUERY SELECT faena.schema_errors(root, declared -> name, field, prefix || name);
        ELSIF schema -> 'additionalProperties' = 'false' THEN
            RETURN NEXT prefix || name || ' is unknown';
        ELSIF schema ? 'additionalProperties' THEN
            RETURN QUERY SELECT faena.schema_errors(root, schema -> 'additionalProperties', field, prefix || name);
        END IF;
        IF schema ? 'propertyNames' THEN
            RETURN QUERY SELECT faena.schema_errors(root, schema -> 'propertyNames', to_jsonb(name), prefix || name);
        END IF;
    END LOOP;
    RETURN QUERY SELECT faena.size_errors(schema, 'Properties', (SELECT count(*) FROM jsonb_object_keys(value)), at, 'fields');
END $$;

CREATE FUNCTION faena.array_errors(root jsonb, schema jsonb, value jsonb, path text, at text)
RETURNS SETOF text LANGUAGE plpgsql STABLE AS $$
DECLARE
    item jsonb;
    number integer := 0;
    first jsonb := coalesce(schema -> 'prefixItems', '[]');
BEGIN
    FOR item IN SELECT * FROM jsonb_array_elements(value) LOOP
        RETURN QUERY SELECT faena.schema_errors(
            root, coalesce(first -> number, schema -> 'items'), item, path || '[' || number || ']');
        number := number + 1;
    END LOOP;
    RETURN QUERY SELECT faena.size_errors(schema, 'Items', number, at, 'items');
    IF schema -> 'uniqueItems' = 'true' AND number > (SELECT count(DISTINCT one) FROM jsonb_array_elements(value) one) THEN
        RETURN NEXT at || ' must have no item twice';
    END IF;
END $$;

CREATE FUNCTION faena.string_errors(schema jsonb, value text, at text)
RETURNS SETOF text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT faena.size_errors(schema, 'Length', length(value), at, 'characters');
    IF schema ? 'pattern' AND value !~ (schema ->> 'pattern') THEN
        RETURN NEXT at || ' must match ' || (schema ->> 'pattern');
    END IF;
    IF schema ? 'format' AND NOT faena.is_of_format(schema ->> 'format', value) THEN
        RETURN NEXT at || ' must be a ' || (schema ->> 'format') || ', got ' || quote_literal(left(value, 100));
    END IF;
END $$;

-- Formats that are not known fit: a worker checks them.
CREATE FUNCTION faena.is_of_format(format text, value text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    CASE format
        WHEN 'date-time' THEN
            RETURN value ~* '^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[-+]\d\d:?\d\d)?$' AND value::timestamptz IS NOT NULL;
        WHEN 'date' THEN RETURN value ~ '^\d{4}-\d\d-\d\d$' AND value::date IS NOT NULL;
        WHEN 'time' THEN RETURN value ~* '^\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[-+]\d\d:?\d\d)?$' AND value::timetz IS NOT NULL;
        WHEN 'uuid' THEN RETURN value::uuid IS NOT NULL;
        ELSE RETURN true;
    END CASE;
EXCEPTION WHEN data_exception THEN
    RETURN false;
END $$;

CREATE FUNCTION faena.number_errors(schema jsonb, value numeric, at text)
RETURNS SETOF text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
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

CREATE FUNCTION faena.size_errors(schema jsonb, what text, size bigint, at text, words text)
RETURNS SETOF text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF size < (schema ->> ('min' || what))::bigint THEN
        RETURN NEXT at || ' must have at least ' || (schema ->> ('min' || what)) || ' ' || words || ', got ' || size;
    ELSIF size > (schema ->> ('max' || what))::bigint THEN
        RETURN NEXT at || ' must have at most ' || (schema ->> ('max' || what)) || ' ' || words || ', got ' || size;
    END IF;
END $$;
