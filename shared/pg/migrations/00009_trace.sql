-- An entry keeps the W3C traceparent of its request, so that the call to the engine continues the trace. It
-- is NULL when the request had none. The previous release does not know the column and leaves it out.

-- +goose Up
ALTER TABLE delivery.entries ADD COLUMN traceparent text COLLATE "C";
GRANT INSERT (traceparent) ON delivery.entries TO storefront_control;
