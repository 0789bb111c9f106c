-- Schema control: platform connectors. How a shop of a platform was installed (installations), its access
-- tokens (credentials), its webhooks (endpoints, webhook_deliveries) and its bootstrap runs (bootstrap_runs).
-- Access tokens are in credentials only, sealed and bound to their row; no other table, job or log has them.

-- +goose Up

-- The installation saga, one per connection: installing the shop again restarts it under the next epoch, and
-- a job of an older epoch changes nothing. attempts counts those of the step that state waits for, due_at is
-- the time of the next one. reason is that of the last failure, also while the saga continues. state failed:
-- the attempts are used up. The lease columns are those of earlier releases.
CREATE TABLE control.installations (
    installation_id      text COLLATE "C" PRIMARY KEY,
    connection_id        text COLLATE "C" NOT NULL UNIQUE REFERENCES control.connections,
    provider             text             NOT NULL,
    provider_app_id      text             NOT NULL,
    epoch                integer          NOT NULL DEFAULT 1,
    state                text             NOT NULL DEFAULT 'opened',
    reason               text,
    attempts             integer          NOT NULL DEFAULT 0,
    scope                text,
    browser_proof_sha256 bytea,
    attribution          json,
    opened_at            timestamptz      NOT NULL DEFAULT now(),
    updated_at           timestamptz      NOT NULL DEFAULT now(),
    due_at               timestamptz      NOT NULL DEFAULT now(),
    lease                text,
    lease_until          timestamptz,
    swept_at             timestamptz,
    caught_up_at         timestamptz,
    CONSTRAINT installations_id_form CHECK (installation_id ~ '^ins_[A-Za-z0-9_-]{1,64}$'),
    CONSTRAINT installations_state
        CHECK (state IN ('opened', 'webhooks_registered', 'bootstrap_started', 'completed', 'failed')),
    CONSTRAINT installations_proof_length CHECK (octet_length(browser_proof_sha256) = 32)
);
GRANT SELECT, INSERT ON control.installations TO storefront_control;
GRANT UPDATE (provider_app_id, epoch, state, reason, attempts, scope, browser_proof_sha256, attribution, opened_at,
    updated_at, due_at, lease, lease_until, swept_at, caught_up_at) ON control.installations TO storefront_control;
CREATE INDEX installations_unfinished ON control.installations (due_at) WHERE state NOT IN ('completed', 'failed');

-- The access token of the platform, sealed for this table, column and connection. The blob begins with the id
-- of its key. An uninstallation deletes the row.
CREATE TABLE control.credentials (
    connection_id text COLLATE "C" PRIMARY KEY REFERENCES control.connections,
    sealed        bytea            NOT NULL,
    updated_at    timestamptz      NOT NULL DEFAULT now(),
    CONSTRAINT credentials_header CHECK (octet_length(sealed) > 5)
);
GRANT SELECT, INSERT, DELETE ON control.credentials TO storefront_control;
GRANT UPDATE (sealed, updated_at) ON control.credentials TO storefront_control;

-- The endpoints for webhooks of a connection. The one without a topic is that of the answer of
-- open_installation; the others are bound to one topic each.
CREATE TABLE control.endpoints (
    endpoint_id     text COLLATE "C" PRIMARY KEY,
    connection_id   text COLLATE "C" NOT NULL REFERENCES control.connections,
    provider        text             NOT NULL,
    provider_app_id text             NOT NULL,
    topic           text COLLATE "C",
    created_at      timestamptz      NOT NULL DEFAULT now(),
    CONSTRAINT endpoints_id_form CHECK (endpoint_id ~ '^whe_[A-Za-z0-9_-]{1,64}$'),
    CONSTRAINT endpoints_one_per_topic UNIQUE NULLS NOT DISTINCT (connection_id, topic)
);
GRANT SELECT, INSERT ON control.endpoints TO storefront_control;
GRANT UPDATE (provider_app_id) ON control.endpoints TO storefront_control;

-- All webhooks, as they came. minted_at is the millisecond that the id itself carries. The headers are
-- unsigned and identify nothing.
CREATE TABLE control.webhook_deliveries (
    delivery_id          text COLLATE "C" NOT NULL,
    minted_at            timestamptz      NOT NULL,
    connection_id        text COLLATE "C" NOT NULL,
    endpoint_id          text COLLATE "C" NOT NULL,
    topic_hint           text,
    provider_delivery_id text,
    triggered_at         text,
    raw                  bytea            NOT NULL,
    received_at          timestamptz      NOT NULL DEFAULT now(),
    PRIMARY KEY (delivery_id, minted_at)
) PARTITION BY RANGE (minted_at);
CREATE TABLE control.webhook_deliveries_default PARTITION OF control.webhook_deliveries DEFAULT;
GRANT SELECT, INSERT ON control.webhook_deliveries TO storefront_control;
GRANT SELECT (minted_at) ON control.webhook_deliveries_default TO storefront_control;

-- Of the entities of a platform: dirty_seq rises with each webhook, clean_seq is the dirty_seq that the last
-- fetch saw before it began, fetch_seq the number of the applied fetch. An entity that a webhook named first
-- is a row of revision 0 until its first fetch is applied; one that no longer exists at its first fetch stays
-- such a row, whose fetch_seq is the tombstone.
ALTER TABLE control.entities
    ADD COLUMN dirty_seq bigint NOT NULL DEFAULT 0,
    ADD COLUMN clean_seq bigint NOT NULL DEFAULT 0,
    ADD COLUMN fetch_seq bigint NOT NULL DEFAULT 0,
    ADD COLUMN fetched_at timestamptz;
GRANT UPDATE (dirty_seq, clean_seq, fetch_seq, fetched_at) ON control.entities TO storefront_control;

-- Numbers fetches in the order in which they begin.
CREATE SEQUENCE control.fetch_seq CACHE 1;
GRANT USAGE ON SEQUENCE control.fetch_seq TO storefront_control;

-- The bootstrap runs of connections. resources: {"product": {"cursor", "read", "changed", "deleted", "done",
-- …}}, saved with each page. resume_at is a column of earlier releases.
CREATE TABLE control.bootstrap_runs (
    bootstrap_run_id text COLLATE "C" PRIMARY KEY,
    command_id       text COLLATE "C" NOT NULL UNIQUE,
    connection_id    text COLLATE "C" NOT NULL REFERENCES control.connections,
    state            text             NOT NULL DEFAULT 'queued',
    reason           text,
    resources        json             NOT NULL,
    resume_at        timestamptz      NOT NULL DEFAULT now(),
    created_at       timestamptz      NOT NULL DEFAULT now(),
    updated_at       timestamptz      NOT NULL DEFAULT now(),
    CONSTRAINT bootstrap_runs_id_form CHECK (bootstrap_run_id ~ '^bsr_[A-Za-z0-9_-]{1,64}$'),
    CONSTRAINT bootstrap_runs_state CHECK (state IN ('queued', 'running', 'completed', 'failed'))
);
CREATE UNIQUE INDEX bootstrap_runs_one_at_a_time ON control.bootstrap_runs (connection_id)
    WHERE state IN ('queued', 'running');
CREATE INDEX bootstrap_runs_of_connection ON control.bootstrap_runs (connection_id, created_at);
GRANT SELECT, INSERT ON control.bootstrap_runs TO storefront_control;
GRANT UPDATE (state, reason, resources, resume_at, updated_at) ON control.bootstrap_runs TO storefront_control;

-- ensure_partitions and drop_partitions handle the days of webhook_deliveries like those of observations.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION control.ensure_partitions(days_ahead integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET lock_timeout = '3s'
AS $$
DECLARE
    parent text;
    name   text;
    today  date := (now() AT TIME ZONE 'UTC')::date;
    ahead  integer := days_ahead;
BEGIN
    IF days_ahead NOT BETWEEN 1 AND 60 THEN
        RAISE EXCEPTION 'days_ahead is %, want 1 to 60', days_ahead USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM pg_advisory_xact_lock(7233, 2);
    FOREACH parent IN ARRAY ARRAY['observations', 'webhook_deliveries'] LOOP
        FOR day IN -1..days_ahead LOOP
            name := format('%s_p%s', parent, to_char(today + day, 'YYYYMMDD'));
            CONTINUE WHEN to_regclass('control.' || name) IS NOT NULL;
            BEGIN
                EXECUTE format('CREATE TABLE control.%I (LIKE control.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)', name, parent);
                EXECUTE format('ALTER TABLE control.%I ATTACH PARTITION control.%I FOR VALUES FROM (%L) TO (%L)',
                    parent, name, (today + day)::timestamptz, (today + day + 1)::timestamptz);
            EXCEPTION WHEN check_violation THEN
                ahead := least(ahead, greatest(day - 1, 0));
                RAISE WARNING 'control.%: rows of % lie in the default partition', parent, today + day;
            END;
        END LOOP;
    END LOOP;
    RETURN ahead;
END
$$;

CREATE OR REPLACE FUNCTION control.drop_partitions(before date) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET lock_timeout = '3s'
AS $$
DECLARE
    child   name;
    dropped integer := 0;
BEGIN
    IF before > (now() AT TIME ZONE 'UTC')::date - 30 THEN
        RAISE EXCEPTION 'before is %, which is younger than thirty days', before USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM pg_advisory_xact_lock(7233, 2);
    FOR child IN
        SELECT c.relname
        FROM pg_inherits i
        JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = ANY (ARRAY['control.observations', 'control.webhook_deliveries']::regclass[])
          AND c.relname ~ '_p[0-9]{8}$'
          AND to_date(right(c.relname, 8), 'YYYYMMDD') < before
        ORDER BY c.relname
    LOOP
        EXECUTE format('DROP TABLE control.%I', child);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END
$$;
-- +goose StatementEnd

SELECT control.ensure_partitions(7);
