-- A replay by ids alone, without a connection. CONCURRENTLY, because relays write dead letters meanwhile; an
-- index that an interrupted build left behind is invalid and is built anew.

-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS delivery.dead_by_id;
CREATE INDEX CONCURRENTLY dead_by_id ON delivery.dead (kind, id);
