-- A delivery remembers the W3C traceparent of the request that brought it, so that the engine's call goes on with the trace. It is NULL
-- where the request had none. The release before does not know the column and leaves it out.

-- +goose Up
ALTER TABLE delivery.entries ADD COLUMN traceparent text COLLATE "C";
GRANT INSERT (traceparent) ON delivery.entries TO storefront_control;
