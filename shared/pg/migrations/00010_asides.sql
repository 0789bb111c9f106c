-- Operation 9 is read by control too, and asks which asides a connection has before it looks into them.

-- +goose Up
GRANT SELECT (connection_id, kind, lane) ON delivery.lanes TO storefront_control;
