-- Two fetches of an entity that overlap: which of them is the newer reading cannot be told.

-- +goose Up

-- stored_seq: a number of control.fetch_seq, taken when the applied fetch was stored. A fetch whose own number is
-- greater began after it. The release before writes 0 or leaves an older number, which only tells less.
ALTER TABLE control.entities ADD COLUMN stored_seq bigint NOT NULL DEFAULT 0;
GRANT UPDATE (stored_seq) ON control.entities TO storefront_control;
