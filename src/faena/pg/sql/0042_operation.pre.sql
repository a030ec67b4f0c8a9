-- What people have asked for on the command line that changes something here.
CREATE TABLE faena.operations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    by_whom text NOT NULL,
    command text NOT NULL,               -- such as 'archive lower'
    subject text NOT NULL DEFAULT ''     -- what it was about: a table, a tenant, …
);
CREATE INDEX operations_at ON faena.operations (at);
