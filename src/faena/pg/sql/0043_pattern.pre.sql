-- Patterns that PostgreSQL does not know, such as those with counts above 255, fit: a worker checks them.

CREATE FUNCTION faena.fits_pattern(pattern text, value text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN value ~ pattern;
EXCEPTION WHEN invalid_regular_expression THEN
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION faena.string_errors(schema jsonb, value text, at text)
RETURNS SETOF text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT faena.size_errors(schema, 'Length', length(value), at, 'characters');
    IF schema ? 'pattern' AND NOT faena.fits_pattern(schema ->> 'pattern', value) THEN
        RETURN NEXT at || ' must match ' || (schema ->> 'pattern');
    END IF;
    IF schema ? 'format' AND NOT faena.is_of_format(schema ->> 'format', value) THEN
        RETURN NEXT at || ' must be a ' || (schema ->> 'format') || ', got ' || quote_literal(left(value, 100));
    END IF;
END $$;
