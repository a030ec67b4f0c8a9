-- All tables of the first release.

CREATE SCHEMA campotech;
SET LOCAL search_path TO campotech;

CREATE TABLE organizations (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    cuit text NOT NULL UNIQUE CHECK (cuit ~ '^[0-9]{11}$'),
    token_digest bytea NOT NULL UNIQUE,       -- SHA-256 of the token that its programs show
    phone_number_id text UNIQUE,              -- its number at WhatsApp
    mp_user_id text UNIQUE,                   -- its account at MercadoPago
    vat_condition smallint NOT NULL DEFAULT 1, -- 1: registered, issues A and B; else: issues C
    point_of_sale integer NOT NULL DEFAULT 1 CHECK (point_of_sale BETWEEN 1 AND 99998),
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE users (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    name text NOT NULL,
    role text NOT NULL CHECK (role IN ('owner', 'dispatcher', 'technician')),
    email text, phone text, push_token text
);
CREATE INDEX ON users (organization_id, role);
CREATE TABLE customers (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    name text NOT NULL,
    phone text, email text, address text,
    tax_id text,                              -- CUIT, CUIL or DNI; NULL: a final consumer
    vat_condition smallint NOT NULL DEFAULT 5,
    clock jsonb NOT NULL DEFAULT '{}',        -- vector clock: the last change of each device
    stamps jsonb NOT NULL DEFAULT '{}',       -- of each field: when and by which device it was written
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON customers (organization_id, phone);

CREATE TABLE jobs (
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    customer_id uuid,
    assigned_to uuid,
    status text NOT NULL DEFAULT 'pending'
        CHECK (status IN ('draft', 'pending', 'scheduled', 'en_camino', 'in_progress', 'completed', 'cancelled')),
    description text NOT NULL DEFAULT '',
    address text,
    scheduled_date timestamptz,
    total_cents bigint,
    clock jsonb NOT NULL DEFAULT '{}',
    stamps jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    completed_at timestamptz,
    PRIMARY KEY (id, created_at)
) PARTITION BY RANGE (created_at);
CREATE INDEX ON jobs (scheduled_date, id) WHERE status IN ('pending', 'scheduled');
CREATE TABLE whatsapp_messages (
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    direction text NOT NULL CHECK (direction IN ('inbound', 'outbound')),
    wa_message_id text,
    kind text NOT NULL,
    content text,
    media_id text,
    status text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id, created_at)
) PARTITION BY RANGE (created_at);
CREATE INDEX ON whatsapp_messages (created_at, id) WHERE status IN ('sending', 'unknown', 'received');
CREATE TABLE technician_locations (
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    user_id uuid NOT NULL,
    latitude decimal(10, 8) NOT NULL,
    longitude decimal(11, 8) NOT NULL,
    accuracy decimal(6, 2),
    recorded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id, recorded_at)
) PARTITION BY RANGE (recorded_at);
CREATE TABLE audit_logs (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    organization_id uuid NOT NULL,
    subject text NOT NULL,
    action text NOT NULL,
    detail jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id, created_at)
) PARTITION BY RANGE (created_at);
CREATE TABLE notification_logs (
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    recipient text NOT NULL,
    channel text NOT NULL CHECK (channel IN ('whatsapp', 'push', 'sms', 'email')),
    kind text NOT NULL,
    status text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id, created_at)
) PARTITION BY RANGE (created_at);
CREATE TABLE location_days (
    organization_id uuid, user_id uuid, day date, pings bigint NOT NULL,
    PRIMARY KEY (organization_id, user_id, day)
);

CREATE TABLE invoices (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    customer_id uuid NOT NULL REFERENCES customers,
    job_id uuid,
    kind char(1) NOT NULL CHECK (kind IN ('A', 'B', 'C')),
    point_of_sale integer NOT NULL CHECK (point_of_sale BETWEEN 1 AND 99999),
    net_cents bigint NOT NULL CHECK (net_cents > 0),
    vat_cents bigint NOT NULL CHECK (vat_cents >= 0),
    total_cents bigint NOT NULL GENERATED ALWAYS AS (net_cents + vat_cents) STORED,
    description text NOT NULL DEFAULT '',
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'sending', 'issued', 'failed')),
    number bigint,                            -- fixed before it is sent, given up if AFIP refuses it
    voucher_date date,                        -- as it was sent
    cae text CHECK (cae ~ '^[0-9]{14}$'),
    cae_expires date,
    problem text,                             -- why it failed
    pdf_key text,
    paid_cents bigint NOT NULL DEFAULT 0,
    due_at timestamptz,
    reminded_at timestamptz,                  -- when the customer was last told that it is overdue
    issued_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (organization_id, point_of_sale, kind, number),
    CHECK ((status = 'issued') = (cae IS NOT NULL))
);
CREATE INDEX ON invoices (created_at) WHERE status = 'pending';
CREATE INDEX ON invoices (organization_id, created_at);
CREATE INDEX ON invoices (voucher_date, organization_id, point_of_sale, kind);
CREATE INDEX ON invoices (organization_id, due_at) WHERE status = 'issued' AND paid_cents < total_cents;
CREATE TABLE afip_tickets (
    cuit text NOT NULL, service text NOT NULL,
    token text NOT NULL, sign text NOT NULL,
    generated_at timestamptz NOT NULL, expires_at timestamptz NOT NULL,
    PRIMARY KEY (cuit, service)
);
CREATE TABLE payment_events (                -- notifications that were taken in, each once
    id text PRIMARY KEY,
    organization_id uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('payment', 'refund', 'chargeback')),
    resource_id text NOT NULL,
    received_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE payments (
    id text PRIMARY KEY,                      -- of MercadoPago
    organization_id uuid NOT NULL,
    invoice_id uuid REFERENCES invoices,
    status text NOT NULL,
    amount_cents bigint NOT NULL,
    refunded_cents bigint NOT NULL DEFAULT 0,
    changed_at timestamptz NOT NULL
);
CREATE INDEX ON payments (organization_id, changed_at);
CREATE TABLE conversations (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    phone text NOT NULL,
    customer_id uuid,
    needs_person boolean NOT NULL DEFAULT false,
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (organization_id, phone)
);
CREATE TABLE whatsapp_seen (                  -- messages of WhatsApp that have come or gone, each once
    wa_message_id text PRIMARY KEY,
    message_id uuid NOT NULL,
    organization_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON whatsapp_seen (created_at);
CREATE TABLE transcripts (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    message_id uuid UNIQUE,                   -- of a customer
    job_id uuid,                              -- that a recording belongs to
    text text NOT NULL,
    confidence real NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK (num_nonnulls(message_id, job_id) = 1)
);
CREATE INDEX ON transcripts (job_id) WHERE job_id IS NOT NULL;
CREATE TABLE offline_operations (            -- what devices did without a network, each once
    organization_id uuid, device_id text,
    digest text,                              -- of the operation
    entity_type text NOT NULL,
    local_id text NOT NULL,
    server_id uuid NOT NULL,
    result text NOT NULL CHECK (result IN ('applied', 'merged', 'superseded', 'refused')),
    problem text,                             -- why it was refused
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, device_id, digest)
);
CREATE TABLE photos (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    job_id uuid NOT NULL,
    file_key text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE files (                          -- objects in storage; those that nothing refers to are orphans
    key text PRIMARY KEY,
    organization_id uuid NOT NULL,
    size bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE otps (
    phone text PRIMARY KEY, digest bytea NOT NULL, expires_at timestamptz NOT NULL
);
CREATE TABLE analytics_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id uuid NOT NULL,
    kind text NOT NULL,
    data jsonb NOT NULL,
    user_id uuid, session_id text,
    job_id text NOT NULL UNIQUE,              -- of the queue: an event is stored once
    at timestamptz NOT NULL
);
CREATE INDEX ON analytics_events (at);
CREATE TABLE ratings (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    job_id uuid NOT NULL UNIQUE,
    stars smallint CHECK (stars BETWEEN 1 AND 5),
    asked_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE reconciliations (                -- one for each message of the queue
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,            -- the nil id: all of them
    kind text NOT NULL CHECK (kind IN ('payments', 'invoices', 'messages')),
    first_day date NOT NULL, last_day date NOT NULL,
    is_full boolean NOT NULL,
    looked_at integer NOT NULL DEFAULT 0, repaired integer NOT NULL DEFAULT 0,
    differing integer NOT NULL DEFAULT 0,
    differences jsonb NOT NULL DEFAULT '[]',  -- the first of them
    position jsonb NOT NULL DEFAULT '{}',     -- where the next attempt goes on
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz
);
CREATE TABLE reports (
    organization_id uuid, week date,
    figures jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, week)
);
CREATE TABLE certificates (                   -- of the tax office, one for each organisation
    organization_id uuid PRIMARY KEY REFERENCES organizations,
    certificate text NOT NULL,
    sealed_key bytea NOT NULL,                -- the private key, encrypted with the system's secret
    expires_at timestamptz NOT NULL,
    warned_days smallint, warned_of timestamptz -- the last warning: so many days before that end
);
CREATE TABLE organization_figures (
    organization_id uuid, day date,
    figures jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, day)
);

SET LOCAL search_path TO DEFAULT;
