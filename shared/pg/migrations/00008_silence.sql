-- Schema control: the time of the last webhook of a shop, and the secret of its subscriptions.

-- +goose Up

-- heard_at: when a webhook of the shop was last accepted, to the minute; the time of the installation before
-- the first. keyed: fingerprint of the app secret that the subscriptions were created with, on platforms that
-- take one with each.
ALTER TABLE control.installations
    ADD COLUMN heard_at timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN keyed    text;
GRANT UPDATE (heard_at, keyed) ON control.installations TO storefront_control;

-- Failed sagas are retried when they are due.
CREATE INDEX installations_failed ON control.installations (due_at) WHERE state = 'failed';
