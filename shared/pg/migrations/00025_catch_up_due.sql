-- Shops that are due for a catch-up are found by the time, so that those that are not due cost nothing. CONCURRENTLY,
-- because shops are installed meanwhile; an index that an interrupted build left behind is invalid and is built anew.

-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS control.installations_catch_up;
CREATE INDEX CONCURRENTLY installations_catch_up ON control.installations (catch_up_at);
