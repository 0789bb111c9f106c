-- When the first entry of a ready lane was enqueued, so that view_queue does not scan the entries; -infinity:
-- not known yet. A lane that is not ready has none.

-- +goose Up
ALTER TABLE delivery.lanes ADD COLUMN oldest_at timestamptz NOT NULL DEFAULT '-infinity';
GRANT SELECT (ready, oldest_at) ON delivery.lanes TO storefront_control;
