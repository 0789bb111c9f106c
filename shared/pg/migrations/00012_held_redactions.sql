-- A redaction that matches many orders beyond those that it names waits for an operator.

-- +goose Up

-- matches: how many orders match, NULL for a request that was never held. A held request is approved
-- (approved_at, and its job continues) or refused (it is completed without approved_at).
ALTER TABLE control.privacy_requests
    ADD COLUMN matches     integer,
    ADD COLUMN approved_at timestamptz;
GRANT UPDATE (matches, approved_at) ON control.privacy_requests TO storefront_control;
