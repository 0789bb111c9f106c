-- A switch for each connection, and the time at which a marked entity is looked at again.

-- +goose Up

-- disabled_at: no job works for the connection and no provider is called for it. disabled_by: 'operator', or 'crashes'
-- when its jobs ended the process again and again.
ALTER TABLE control.connections
    ADD COLUMN disabled_at     timestamptz,
    ADD COLUMN disabled_by     text,
    ADD COLUMN disabled_reason text,
    ADD CONSTRAINT connections_disabled CHECK ((disabled_at IS NULL) = (disabled_by IS NULL)) NOT VALID;
GRANT UPDATE (disabled_at, disabled_by, disabled_reason) ON control.connections TO storefront_control;

-- sweep_at: when an entity whose last webhook was not followed by a fetch gets another job.
ALTER TABLE control.entities ADD COLUMN sweep_at timestamptz NOT NULL DEFAULT 'epoch';
GRANT UPDATE (sweep_at) ON control.entities TO storefront_control;
