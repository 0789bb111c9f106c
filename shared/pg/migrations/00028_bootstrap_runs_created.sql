-- The oldest bootstrap runs are found by their time. CONCURRENTLY, because runs are opened meanwhile; an index that an
-- interrupted build left behind is invalid and is built anew.

-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS control.bootstrap_runs_created;
CREATE INDEX CONCURRENTLY bootstrap_runs_created ON control.bootstrap_runs (created_at) WHERE state IN ('completed', 'failed');
