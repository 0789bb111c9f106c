-- How far the execution of a request about personal data is.

-- +goose Up

-- {"step", "after", "orders", "read"}; only ids. A held and a completed request have none.
ALTER TABLE control.privacy_requests ADD COLUMN progress json;
GRANT UPDATE (progress) ON control.privacy_requests TO storefront_control;
