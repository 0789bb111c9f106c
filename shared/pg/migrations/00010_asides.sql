-- view_queue reads the retry lanes of a connection before their entries; control needs access for that.

-- +goose Up
GRANT SELECT (connection_id, kind, lane) ON delivery.lanes TO storefront_control;
