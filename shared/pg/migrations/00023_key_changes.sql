-- The changes of storefront keys in their order, so that an edge forgets the key that changed and no other.

-- +goose Up

-- A row for each change: a key was issued or revoked. The token tells changes of the same version apart: after
-- a restore, versions are given a second time. Control deletes the oldest rows. The first row is no change of
-- a key; it is where a reader begins.
CREATE TABLE control.key_changes (
    version bigint PRIMARY KEY,
    token   uuid   NOT NULL DEFAULT gen_random_uuid(),
    digest  bytea  NOT NULL,
    CONSTRAINT key_changes_digest_length CHECK (octet_length(digest) = 32)
);
GRANT SELECT, INSERT, DELETE ON control.key_changes TO storefront_control;
GRANT SELECT (version, token, digest) ON control.key_changes TO storefront_edge;

-- A trigger, because controls of the previous release change keys too.
-- +goose StatementBegin
CREATE FUNCTION control.record_key_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO control.key_changes (version, digest) VALUES (NEW.changed_version, NEW.digest);
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER api_keys_changed AFTER INSERT OR UPDATE OF changed_version ON control.api_keys
    FOR EACH ROW WHEN (NEW.changed_version > 0) EXECUTE FUNCTION control.record_key_change();

INSERT INTO control.key_changes (version, digest)
SELECT version, decode(repeat('00', 32), 'hex')
FROM control.key_version;
