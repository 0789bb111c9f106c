-- The ledger's row without the connection, which its digest holds already: 93 bytes with its index instead of
-- 156. Relays of this release insert into relay.ledger_digests only. The rows of relay.ledger stay where they
-- are and are asked too; see ADR 34.

-- +goose Up

-- One row per signal that was ever stored: digest is the first half of SHA-256 over connection and signal id.
-- The row makes each signal count once, so it outlives the signal and is never dropped with it.
CREATE TABLE relay.ledger_digests (
    digest    uuid        NOT NULL PRIMARY KEY,
    stored_at timestamptz NOT NULL DEFAULT now()
) PARTITION BY HASH (digest);

-- +goose StatementBegin
DO $$
BEGIN
    FOR part IN 0..15 LOOP
        EXECUTE format('CREATE TABLE relay.ledger_digests_%s PARTITION OF relay.ledger_digests FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
            lpad(part::text, 2, '0'), part);
    END LOOP;
END
$$;
-- +goose StatementEnd

GRANT SELECT, INSERT ON relay.ledger_digests TO storefront_relay;
GRANT SELECT ON relay.ledger_digests TO storefront_edge;

-- Relays of the previous release insert into relay.ledger. Each of their rows is inserted into
-- relay.ledger_digests first, and left out when it is there: that one unique index decides for relays of both
-- releases which of them stores a signal. It must be BEFORE: an AFTER trigger comes too late to leave a row out.
-- +goose StatementBegin
CREATE FUNCTION relay.insert_digest() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO relay.ledger_digests (digest, stored_at) VALUES (NEW.digest, NEW.stored_at) ON CONFLICT DO NOTHING;
    IF FOUND THEN
        RETURN NEW;
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- The statement waits for the transactions that inserted into relay.ledger, and later ones wait for it. So a
-- row that this trigger did not see is committed before any relay of this release begins a statement.
CREATE TRIGGER insert_digest BEFORE INSERT ON relay.ledger FOR EACH ROW EXECUTE FUNCTION relay.insert_digest();
