-- Operators list, replay and drop parked records through control; relays replay them. A parked record is rare, so its
-- table is small and the indexes are built at once.

-- +goose Up

-- replay_requested_at: control asks a relay to store the record. The relay sets replayed_at, or removes the request and
-- sets replay_failed_at when the record is refused again. dropped_at and drop_reason: an operator gave it up. Of a
-- record that was replayed or dropped, bytes are replaced by their digest; the row stays as the trace of what was done.
ALTER TABLE relay.parked
    ADD COLUMN replay_requested_at timestamptz,
    ADD COLUMN replay_failed_at    timestamptz,
    ADD COLUMN replayed_at         timestamptz,
    ADD COLUMN dropped_at          timestamptz,
    ADD COLUMN drop_reason         text;
CREATE INDEX parked_waiting ON relay.parked (parked_id) WHERE replayed_at IS NULL AND dropped_at IS NULL;
CREATE INDEX parked_replay ON relay.parked (replay_requested_at) WHERE replay_requested_at IS NOT NULL AND replayed_at IS NULL;
GRANT SELECT, UPDATE (bytes, replay_requested_at, dropped_at, drop_reason) ON relay.parked TO storefront_control;
GRANT UPDATE (bytes, reason, sqlstate, replay_requested_at, replay_failed_at, replayed_at) ON relay.parked TO storefront_relay;
