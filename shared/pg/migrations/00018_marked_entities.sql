-- Entities that a webhook marked and no fetch has followed. CONCURRENTLY, because webhooks mark entities meanwhile; an
-- index that an interrupted build left behind is invalid and is built anew.

-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS control.entities_marked;
CREATE INDEX CONCURRENTLY entities_marked ON control.entities (sweep_at)
    WHERE dirty_seq > clean_seq AND redacted_at IS NULL;
