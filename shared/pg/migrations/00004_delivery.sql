-- Schema delivery: the queue toward the engine. Only shared/deliveries writes it: control enqueues envelopes,
-- replays dead letters and asks for a probe; engine-relay does the rest. Kinds: 1 interaction, 2 envelope.

-- +goose Up
CREATE SCHEMA IF NOT EXISTS delivery;
GRANT USAGE ON SCHEMA delivery TO storefront_relay, storefront_control;

-- The waiting entries. Lanes 0 to 7 hold entries that are delivered in order and in batches; 8 to 15 are
-- their retry lanes, whose entries are retried alone, each at its own time. Rows of lanes 0 to 7 are inserted
-- and deleted, and updated only to freeze a body that awaited its Decision, or to count a failed attempt.
-- body is the JSON object, byte for byte as it is delivered. failed_since is on the clock that stops while no
-- worker runs (delivery.running_now()).
CREATE TABLE delivery.entries (
    connection_id text COLLATE "C" NOT NULL,
    kind          smallint         NOT NULL,
    lane          smallint         NOT NULL,
    seq           bigint           GENERATED ALWAYS AS IDENTITY,
    id            text COLLATE "C" NOT NULL,
    body          bytea            NOT NULL,
    awaits        text COLLATE "C",
    awaits_minted timestamptz,
    attempts      integer          NOT NULL DEFAULT 0,
    failed_since  timestamptz,
    not_before    timestamptz,
    created_at    timestamptz      NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (connection_id, kind, lane, seq),
    CONSTRAINT entries_kind CHECK (kind IN (1, 2)),
    CONSTRAINT entries_lane CHECK (lane BETWEEN 0 AND 15),
    CONSTRAINT entries_body CHECK (octet_length(body) >= 2),
    CONSTRAINT entries_awaits CHECK (awaits IS NULL OR (kind = 1 AND lane < 8)),
    CONSTRAINT entries_attempts CHECK (attempts >= 0),
    CONSTRAINT entries_aside CHECK ((lane >= 8) = (not_before IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 1);
CREATE INDEX entries_aside_due ON delivery.entries (connection_id, kind, lane, not_before) WHERE lane >= 8;
GRANT SELECT, INSERT, UPDATE, DELETE ON delivery.entries TO storefront_relay;
GRANT INSERT (connection_id, kind, lane, id, body, awaits, awaits_minted, created_at) ON delivery.entries TO storefront_control;
GRANT SELECT (connection_id, kind, lane, seq, created_at) ON delivery.entries TO storefront_control;

-- The lease of each lane. The compactor creates and wakes lanes. fence rises with each lease, and each later
-- change names it. flight: the entries that are sent under the current lease; unconfirmed: entries that were
-- sent and not answered, including the flight of an expired lease.
CREATE TABLE delivery.lanes (
    connection_id text COLLATE "C" NOT NULL,
    kind          smallint         NOT NULL,
    lane          smallint         NOT NULL,
    ready         boolean          NOT NULL,
    fence         bigint           NOT NULL DEFAULT 0,
    leased_until  timestamptz      NOT NULL DEFAULT '-infinity',
    leased_by     text,
    served_at     timestamptz      NOT NULL DEFAULT '-infinity',
    not_before    timestamptz      NOT NULL DEFAULT '-infinity',
    flight        bigint[]         NOT NULL DEFAULT '{}',
    unconfirmed   bigint[]         NOT NULL DEFAULT '{}',
    PRIMARY KEY (connection_id, kind, lane),
    CONSTRAINT lanes_kind CHECK (kind IN (1, 2)),
    CONSTRAINT lanes_lane CHECK (lane BETWEEN 0 AND 15)
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX lanes_ready ON delivery.lanes (served_at) WHERE ready;
GRANT SELECT, INSERT, UPDATE ON delivery.lanes TO storefront_relay;

-- The changes of each transaction, appended without a lock; a compactor folds them into the counts and wakes
-- the lanes (one bit each). minute is the minute in which the counted entries were dead-lettered.
CREATE TABLE delivery.deltas (
    delta_id      bigint           GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    connection_id text COLLATE "C" NOT NULL,
    kind          smallint         NOT NULL,
    pending       integer          NOT NULL,
    unconfirmed   integer          NOT NULL DEFAULT 0,
    dead          integer          NOT NULL DEFAULT 0,
    minute        timestamptz,
    lanes         smallint         NOT NULL DEFAULT 0,
    CONSTRAINT deltas_kind CHECK (kind IN (1, 2)),
    CONSTRAINT deltas_lanes CHECK (lanes BETWEEN 0 AND 255),
    CONSTRAINT deltas_minute CHECK ((dead <> 0) = (minute IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
GRANT SELECT, INSERT, UPDATE, DELETE ON delivery.deltas TO storefront_relay; -- UPDATE: to lock rows and skip locked ones
GRANT SELECT, INSERT ON delivery.deltas TO storefront_control;

CREATE TABLE delivery.counts (
    connection_id text COLLATE "C" NOT NULL,
    kind          smallint         NOT NULL,
    pending       bigint           NOT NULL,
    unconfirmed   bigint           NOT NULL,
    PRIMARY KEY (connection_id, kind),
    CONSTRAINT counts_kind CHECK (kind IN (1, 2))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
GRANT SELECT, INSERT, UPDATE ON delivery.counts TO storefront_relay;
GRANT SELECT ON delivery.counts TO storefront_control;

-- Dead letters, with their bytes. lane is the one that a replay returns the entry to.
CREATE TABLE delivery.dead (
    connection_id text COLLATE "C" NOT NULL,
    kind          smallint         NOT NULL,
    id            text COLLATE "C" NOT NULL,
    lane          smallint         NOT NULL,
    body          bytea            NOT NULL,
    created_at    timestamptz      NOT NULL,
    died_at       timestamptz      NOT NULL,
    attempts      integer          NOT NULL,
    reason        text             NOT NULL,
    PRIMARY KEY (connection_id, kind, id),
    CONSTRAINT dead_kind CHECK (kind IN (1, 2)),
    CONSTRAINT dead_lane CHECK (lane BETWEEN 0 AND 7)
);
CREATE INDEX dead_newest ON delivery.dead (kind, died_at, connection_id, id);
CREATE INDEX dead_newest_of ON delivery.dead (connection_id, kind, died_at, id);
GRANT SELECT, INSERT, UPDATE ON delivery.dead TO storefront_relay;
GRANT SELECT, DELETE ON delivery.dead TO storefront_control;

CREATE TABLE delivery.dead_minutes (
    minute        timestamptz      NOT NULL,
    connection_id text COLLATE "C" NOT NULL,
    kind          smallint         NOT NULL,
    dead          integer          NOT NULL,
    PRIMARY KEY (minute, kind, connection_id)
);
GRANT SELECT, INSERT, UPDATE, DELETE ON delivery.dead_minutes TO storefront_relay;
GRANT SELECT ON delivery.dead_minutes TO storefront_control;

-- The relays. stopped: the relay ended in order, so its state counts only while no other relay reports.
CREATE TABLE delivery.relays (
    relay_id          text        PRIMARY KEY,
    configured        boolean     NOT NULL,
    credential_digest bytea,
    heartbeat_at      timestamptz NOT NULL,
    stopped           boolean     NOT NULL DEFAULT false,
    CONSTRAINT relays_digest CHECK (configured = (credential_digest IS NOT NULL) AND octet_length(credential_digest) = 32)
) WITH (fillfactor = 50);
GRANT SELECT, INSERT, UPDATE, DELETE ON delivery.relays TO storefront_relay;
GRANT SELECT ON delivery.relays TO storefront_control;

-- Credentials that the engine refused, by SHA-256; blocked_at is NULL after it accepted the credential again,
-- at cleared_at. A refusal of an entry that was leased before cleared_at is late and blocks nothing.
-- probe_at: from then on one request may probe.
CREATE TABLE delivery.blocks (
    credential_digest bytea       PRIMARY KEY,
    blocked_at        timestamptz,
    cleared_at        timestamptz,
    probe_at          timestamptz,
    CONSTRAINT blocks_digest CHECK (octet_length(credential_digest) = 32),
    CONSTRAINT blocks_state CHECK (blocked_at IS NOT NULL OR (cleared_at IS NOT NULL AND probe_at IS NULL))
);
GRANT SELECT, INSERT, UPDATE ON delivery.blocks TO storefront_relay;
GRANT SELECT ON delivery.blocks TO storefront_control;
GRANT UPDATE (probe_at) ON delivery.blocks TO storefront_control;

-- The clock of failures: how long no worker ran in total, and since when none runs.
CREATE TABLE delivery.clock (
    singleton  boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
    held       interval    NOT NULL DEFAULT '0',
    held_since timestamptz
);
INSERT INTO delivery.clock DEFAULT VALUES;
GRANT SELECT, UPDATE ON delivery.clock TO storefront_relay;

CREATE FUNCTION delivery.running_now() RETURNS timestamptz
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
RETURN (SELECT coalesce(c.held_since, now()) - c.held FROM delivery.clock c);
REVOKE ALL ON FUNCTION delivery.running_now() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION delivery.running_now() TO storefront_relay;

-- The state of the worker: of the relays with a heartbeat within 15 s, else of the one with the last
-- heartbeat.
CREATE VIEW delivery.worker AS
WITH speaking AS (
    SELECT configured, credential_digest
    FROM delivery.relays
    WHERE NOT stopped AND heartbeat_at > now() - interval '15 seconds'
), heard AS (
    SELECT configured, credential_digest FROM speaking
    UNION ALL
    (SELECT configured, credential_digest
     FROM delivery.relays
     WHERE NOT EXISTS (SELECT FROM speaking)
     ORDER BY heartbeat_at DESC
     LIMIT 1)
)
SELECT CASE
           WHEN bool_or(h.configured AND b.blocked_at IS NULL) THEN 'running'
           WHEN bool_or(h.configured) THEN 'blocked'
           ELSE 'disabled'
       END AS state,
       min(b.blocked_at) AS blocked_at
FROM heard h
LEFT JOIN delivery.blocks b ON b.credential_digest = h.credential_digest;
GRANT SELECT ON delivery.worker TO storefront_relay, storefront_control;
