-- Schema control: how long a shop has been silent, and the secret that its subscriptions were made with.

-- +goose Up

-- heard_at: when a notification of the shop was last taken, to a minute; from when nobody has heard of it else.
-- keyed: which secret of the app its subscriptions have, of providers that take one with each. It is a fingerprint.
ALTER TABLE control.installations
    ADD COLUMN heard_at timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN keyed    text;
GRANT UPDATE (heard_at, keyed) ON control.installations TO storefront_control;

-- Sagas that failed are tried again when they are due.
CREATE INDEX installations_failed ON control.installations (due_at) WHERE state = 'failed';
