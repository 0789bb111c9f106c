-- When a shop is due for its next catch-up.

-- +goose Up

-- catch_up_at: when the next catch-up, reload or check of the shop is enqueued. Each shop has its own place within
-- CONTROL_CATCH_UP_EVERY, so the work of many shops is spread over it.
ALTER TABLE control.installations ADD COLUMN catch_up_at timestamptz NOT NULL DEFAULT now();
GRANT UPDATE (catch_up_at) ON control.installations TO storefront_control;
