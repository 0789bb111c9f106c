-- What is quarantined leaves the quarantine when its entity is accepted. Migration 31 builds the index and marks
-- the entities of what is in the quarantine already.

-- +goose Up

-- Of the last observation of an entity that is in the quarantine: its id and the digest of its bytes ('' when there
-- is none); quarantined_revision is the greatest revision there. An entity that was only quarantined is a row of
-- revision 0. What the release before quarantines beside this one has no mark, and leaves by replay_quarantined.
ALTER TABLE control.entities
    ADD COLUMN quarantined_id       text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN quarantined_digest   text             NOT NULL DEFAULT '',
    ADD COLUMN quarantined_revision bigint           NOT NULL DEFAULT 0;
GRANT UPDATE (quarantined_id, quarantined_digest, quarantined_revision) ON control.entities TO storefront_control;
