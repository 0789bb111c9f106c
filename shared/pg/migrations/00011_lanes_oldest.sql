-- When the first entry of a lane that is ready was enqueued, so that operation 9 need not look at what waits; -infinity: nobody
-- said it yet. A lane that sleeps has none.

-- +goose Up
ALTER TABLE delivery.lanes ADD COLUMN oldest_at timestamptz NOT NULL DEFAULT '-infinity';
GRANT SELECT (ready, oldest_at) ON delivery.lanes TO storefront_control;
