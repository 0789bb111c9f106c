-- Schema relay: what engine-relay stores of shoppers' signals. The narrow ledger keeps signals unique; the
-- large tables are partitioned by day, and days are dropped. Identifiers compare bytewise (COLLATE "C"), as
-- the relay sorts.

-- +goose Up
CREATE SCHEMA IF NOT EXISTS relay;
GRANT USAGE ON SCHEMA relay TO storefront_relay, storefront_edge;

-- One row per signal that was ever stored: digest is the first half of SHA-256 over connection and signal id.
-- The row makes each signal count once, so it outlives the signal and is never dropped with it.
CREATE TABLE relay.ledger (
    connection_id text COLLATE "C" NOT NULL,
    digest        uuid             NOT NULL,
    stored_at     timestamptz      NOT NULL DEFAULT now(),
    PRIMARY KEY (connection_id, digest)
) PARTITION BY HASH (digest);

-- +goose StatementBegin
DO $$
BEGIN
    FOR part IN 0..15 LOOP
        EXECUTE format('CREATE TABLE relay.ledger_%s PARTITION OF relay.ledger FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
            lpad(part::text, 2, '0'), part);
    END LOOP;
END
$$;
-- +goose StatementEnd

-- stored_at is now() of the storing transaction, as in the ledger, so a ledger row leads to the day and the
-- block. foreign_item: the Decision does not contain this item; NULL while the Decision is unknown. crawler:
-- the request looked like a crawler's.
CREATE TABLE relay.signals (
    connection_id     text COLLATE "C" NOT NULL,
    decision_id       text COLLATE "C" NOT NULL,
    signal_id         text COLLATE "C" NOT NULL,
    store_id          text             NOT NULL,
    type              text             NOT NULL,
    item_id           text COLLATE "C",
    variant_id        text COLLATE "C",
    order_external_id text,
    visitor_id        text,
    session_id        text,
    record_id         uuid             NOT NULL,
    stored_at         timestamptz      NOT NULL DEFAULT now(),
    received_at       timestamptz      NOT NULL,
    occurred_at       timestamptz      NOT NULL,
    position          integer,
    quantity          integer,
    record_index      smallint         NOT NULL,
    crawler           boolean          NOT NULL,
    foreign_item      boolean
) PARTITION BY RANGE (stored_at);
CREATE INDEX signals_stored ON relay.signals USING brin (stored_at);
CREATE INDEX signals_unmarked ON relay.signals (connection_id, decision_id, stored_at) WHERE foreign_item IS NULL;
CREATE TABLE relay.signals_default PARTITION OF relay.signals DEFAULT;

-- One row per request with at least one new signal. clients: {signal_id: client}. Never leaves PostgreSQL.
CREATE TABLE relay.audit (
    connection_id   text COLLATE "C" NOT NULL,
    record_id       uuid             NOT NULL,
    stored_at       timestamptz      NOT NULL DEFAULT now(),
    received_at     timestamptz      NOT NULL,
    crawler         boolean          NOT NULL,
    ip              text             NOT NULL,
    user_agent      text             NOT NULL,
    accept_language text             NOT NULL,
    origin          text             NOT NULL,
    referer         text             NOT NULL,
    clients         json
) PARTITION BY RANGE (stored_at);
CREATE INDEX audit_stored ON relay.audit USING brin (stored_at);
CREATE TABLE relay.audit_default PARTITION OF relay.audit DEFAULT;

-- minted_at is the instant that the decision id itself carries (the epoch when it carries none), so that an
-- id leads to one partition and is unique over all of them.
CREATE TABLE relay.decisions (
    connection_id text COLLATE "C" NOT NULL,
    decision_id   text COLLATE "C" NOT NULL,
    minted_at     timestamptz      NOT NULL,
    store_id      text             NOT NULL,
    placement     text             NOT NULL,
    source        text             NOT NULL,
    served_at     timestamptz      NOT NULL,
    stored_at     timestamptz      NOT NULL DEFAULT now(),
    items         json             NOT NULL,
    engine_ids    json,
    visitor_id    text,
    session_id    text,
    PRIMARY KEY (connection_id, decision_id, minted_at)
) PARTITION BY RANGE (minted_at);
CREATE TABLE relay.decisions_default PARTITION OF relay.decisions DEFAULT;

-- The cart line of one Decision, item and variant ('' for no variant). state is what folding in any order
-- needs beside the quantity: the last set-or-remove and the adds after it (package cart of engine-relay owns
-- its form).
CREATE TABLE relay.cart_lines (
    connection_id text COLLATE "C" NOT NULL,
    decision_id   text COLLATE "C" NOT NULL,
    item_id       text COLLATE "C" NOT NULL,
    variant_id    text COLLATE "C" NOT NULL,
    quantity      integer          NOT NULL DEFAULT 0 CHECK (quantity BETWEEN 0 AND 1000000),
    revision      bigint           NOT NULL DEFAULT 0,
    state         bytea            NOT NULL DEFAULT '',
    updated_at    timestamptz      NOT NULL DEFAULT now(),
    PRIMARY KEY (connection_id, decision_id, item_id, variant_id)
) WITH (fillfactor = 80);

-- Records that could not be stored, with their bytes, so that none is lost. signal_index is -1 for a whole
-- Kafka record; for one signal the bytes are a record with that signal only, ready to be produced again. The
-- digest of the bytes is in the key because offsets start again when a topic is created again.
CREATE TABLE relay.parked (
    parked_id       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic           text        NOT NULL,
    topic_partition integer     NOT NULL,
    record_offset   bigint      NOT NULL,
    signal_index    integer     NOT NULL,
    connection_id   text,
    signal_id       text,
    reason          text        NOT NULL,
    sqlstate        text        NOT NULL,
    bytes           bytea       NOT NULL,
    digest          bytea       NOT NULL GENERATED ALWAYS AS (sha256(bytes)) STORED,
    parked_at       timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT parked_once UNIQUE (topic, topic_partition, record_offset, signal_index, digest)
);

-- ensure_partitions creates the days from yesterday to days_ahead and returns how many whole days ahead exist
-- for all tables. A day whose rows are in the default partition already cannot be created: it is left out
-- with a warning.
-- +goose StatementBegin
CREATE FUNCTION relay.ensure_partitions(days_ahead integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET lock_timeout = '3s'
AS $$
DECLARE
    parent  text;
    name    text;
    today   date := (now() AT TIME ZONE 'UTC')::date;
    ahead   integer := days_ahead;
BEGIN
    IF days_ahead NOT BETWEEN 1 AND 60 THEN
        RAISE EXCEPTION 'days_ahead is %, want 1 to 60', days_ahead USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM pg_advisory_xact_lock(7233, 1);
    FOREACH parent IN ARRAY ARRAY['signals', 'audit', 'decisions'] LOOP
        FOR day IN -1..days_ahead LOOP
            name := format('%s_p%s', parent, to_char(today + day, 'YYYYMMDD'));
            CONTINUE WHEN to_regclass('relay.' || name) IS NOT NULL;
            BEGIN
                EXECUTE format('CREATE TABLE relay.%I (LIKE relay.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', name, parent);
                EXECUTE format('ALTER TABLE relay.%I ATTACH PARTITION relay.%I FOR VALUES FROM (%L) TO (%L)',
                    parent, name, (today + day)::timestamptz, (today + day + 1)::timestamptz);
            EXCEPTION WHEN check_violation THEN
                ahead := least(ahead, greatest(day - 1, 0));
                RAISE WARNING 'relay.%: rows of % lie in the default partition', parent, today + day;
            END;
        END LOOP;
    END LOOP;
    RETURN ahead;
END
$$;
-- +goose StatementEnd

-- drop_partitions drops the days of signals, audit and decisions that lie wholly before the date, and returns
-- the number of tables. It never drops the last seven days.
-- +goose StatementBegin
CREATE FUNCTION relay.drop_partitions(before date) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET lock_timeout = '3s'
AS $$
DECLARE
    child   name;
    dropped integer := 0;
BEGIN
    IF before > (now() AT TIME ZONE 'UTC')::date - 7 THEN
        RAISE EXCEPTION 'before is %, which is younger than seven days', before USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM pg_advisory_xact_lock(7233, 1);
    FOR child IN
        SELECT c.relname
        FROM pg_inherits i
        JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = ANY (ARRAY['relay.signals', 'relay.audit', 'relay.decisions']::regclass[])
          AND c.relname ~ '_p[0-9]{8}$'
          AND to_date(right(c.relname, 8), 'YYYYMMDD') < before
        ORDER BY c.relname
    LOOP
        EXECUTE format('DROP TABLE relay.%I', child);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END
$$;
-- +goose StatementEnd

SELECT relay.ensure_partitions(7);

REVOKE ALL ON FUNCTION relay.ensure_partitions(integer), relay.drop_partitions(date) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION relay.ensure_partitions(integer), relay.drop_partitions(date) TO storefront_relay;

GRANT SELECT, INSERT ON relay.ledger, relay.signals, relay.decisions, relay.cart_lines, relay.parked TO storefront_relay;
GRANT INSERT ON relay.audit TO storefront_relay;
GRANT UPDATE (foreign_item) ON relay.signals TO storefront_relay;
GRANT UPDATE (quantity, revision, state, updated_at) ON relay.cart_lines TO storefront_relay;
GRANT SELECT (stored_at) ON relay.signals_default, relay.audit_default TO storefront_relay;

GRANT SELECT ON relay.ledger TO storefront_edge;
GRANT SELECT (stored_at) ON relay.audit TO storefront_edge;
