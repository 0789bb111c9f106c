-- Schema control: connections, the tokens of custom connectors and the storefront keys.
-- Only control writes. Edge reads the columns that it needs to resolve a key: never a sealed secret, the
-- profile of a shop or the token of a connector. No role may delete a row.
-- River's tables live in this schema too; `control migrate up` creates them and grants access.

-- +goose Up
CREATE SCHEMA IF NOT EXISTS control;
GRANT USAGE ON SCHEMA control TO storefront_control, storefront_edge;

CREATE TABLE control.connections (
    connection_id     text        PRIMARY KEY,
    store_id          text        NOT NULL UNIQUE,
    provider          text        NOT NULL,
    external_store_id text        NOT NULL,
    state             text        NOT NULL DEFAULT 'active',
    store_profile     json,
    created_at        timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT connections_one_per_store UNIQUE (provider, external_store_id),
    CONSTRAINT connections_id_form CHECK (connection_id ~ '^con_[A-Za-z0-9_-]{1,64}$'),
    CONSTRAINT connections_store_form CHECK (store_id ~ '^str_[A-Za-z0-9_-]{1,64}$'),
    CONSTRAINT connections_state_form CHECK (state ~ '^[a-z_]{1,32}$')
);
GRANT SELECT, INSERT ON control.connections TO storefront_control;
GRANT UPDATE (state, store_profile) ON control.connections TO storefront_control;
GRANT SELECT (connection_id, store_id, provider, state) ON control.connections TO storefront_edge;

-- One token per custom connection. Rotating it replaces the values of the row, so the old token is invalid at
-- once.
CREATE TABLE control.connector_tokens (
    connection_id      text        PRIMARY KEY REFERENCES control.connections,
    connector_token_id text        NOT NULL,
    token_hmac         bytea       NOT NULL UNIQUE,
    created_at         timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT connector_tokens_hmac_length CHECK (octet_length(token_hmac) = 32)
);
GRANT SELECT, INSERT ON control.connector_tokens TO storefront_control;
GRANT UPDATE (connector_token_id, token_hmac, created_at) ON control.connector_tokens TO storefront_control;

-- changed_version is the key version of the last change of the row, pushed_version the newest one that Redis
-- is known to hold. The version published in Redis stays below that of a row whose change is not in Redis, so
-- an edge never trusts a Redis that misses a revocation.
CREATE TABLE control.api_keys (
    api_key_id      text        PRIMARY KEY,
    connection_id   text        NOT NULL REFERENCES control.connections,
    digest          bytea       NOT NULL UNIQUE,
    sealed_secret   bytea,
    scopes          text[]      NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    revoked_at      timestamptz,
    changed_version bigint      NOT NULL DEFAULT 0,
    pushed_version  bigint      NOT NULL DEFAULT 0,
    CONSTRAINT api_keys_id_form CHECK (api_key_id ~ '^key_[A-Za-z0-9_-]{1,64}$'),
    CONSTRAINT api_keys_digest_length CHECK (octet_length(digest) = 32),
    CONSTRAINT api_keys_scopes_closed CHECK (
        cardinality(scopes) > 0
        AND scopes <@ ARRAY['catalog:read', 'recommendations:read', 'signals:write'])
);
CREATE INDEX api_keys_live ON control.api_keys (connection_id, created_at DESC, api_key_id DESC)
    WHERE revoked_at IS NULL;
CREATE INDEX api_keys_unpushed ON control.api_keys (changed_version)
    WHERE pushed_version < changed_version;
CREATE INDEX api_keys_revoked ON control.api_keys (revoked_at)
    WHERE revoked_at IS NOT NULL;
GRANT SELECT, INSERT ON control.api_keys TO storefront_control;
GRANT UPDATE (sealed_secret, revoked_at, changed_version, pushed_version) ON control.api_keys TO storefront_control;
GRANT SELECT (api_key_id, connection_id, digest, scopes, revoked_at) ON control.api_keys TO storefront_edge;

-- One row. A transaction that issues or revokes a key raises the version while it holds the row, so versions
-- become visible in their order.
CREATE TABLE control.key_version (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    version   bigint  NOT NULL CHECK (version >= 0)
);
INSERT INTO control.key_version (version) VALUES (0);
GRANT SELECT, UPDATE (version) ON control.key_version TO storefront_control;
GRANT SELECT (version) ON control.key_version TO storefront_edge;
