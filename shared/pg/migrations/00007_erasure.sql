-- Erasure of personal data. relay.erasures: erasures of shoppers (erase_visitor), requested by control and
-- executed by the relay. control.privacy_requests: requests of platforms about buyers' data, executed by
-- control; they lead to erasures too. While an index is built here, writers of its table wait: records of the
-- sink wait in Kafka.

-- +goose Up

-- One row per subject that was ever erased: a visitor, the visitors who bought an order, or all visitors of a
-- connection. It stays, since records that were accepted before erased_at may still come out of Kafka.
-- subject_id stays only until the work is done; then only digest (half of a SHA-256) identifies it. erased_at
-- is PostgreSQL's clock at the request; another request moves it and restarts the work. claimed_until: the
-- end of the claim of a relay.
CREATE TABLE relay.erasures (
    connection_id text COLLATE "C" NOT NULL,
    subject       text             NOT NULL,
    digest        uuid             NOT NULL,
    subject_id    text,
    erased_at     timestamptz      NOT NULL DEFAULT clock_timestamp(),
    completed_at  timestamptz,
    claimed_by    text,
    claimed_until timestamptz      NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (connection_id, subject, digest),
    CONSTRAINT erasures_subject CHECK (subject IN ('visitor', 'order', 'connection')),
    CONSTRAINT erasures_name CHECK ((subject_id IS NULL) = (completed_at IS NOT NULL))
);
CREATE INDEX erasures_pending ON relay.erasures (erased_at) WHERE completed_at IS NULL;
CREATE INDEX erasures_newest ON relay.erasures (erased_at);
GRANT USAGE ON SCHEMA relay TO storefront_control;
GRANT SELECT (connection_id, subject, digest, erased_at, completed_at), INSERT (connection_id, subject, digest, subject_id),
    UPDATE (subject_id, erased_at, completed_at) ON relay.erasures TO storefront_control;
GRANT SELECT, INSERT (connection_id, subject, digest, subject_id, erased_at),
    UPDATE (subject_id, erased_at, completed_at, claimed_by, claimed_until) ON relay.erasures TO storefront_relay;

-- Indexes to find the rows of a visitor. A row leaves its index when it is erased, so interrupted work finds
-- the rest. The id of a record is a UUIDv7, so the audit grows at the end of its index.
CREATE INDEX signals_visitor ON relay.signals (connection_id, visitor_id) WHERE visitor_id IS NOT NULL OR session_id IS NOT NULL;
CREATE INDEX signals_order ON relay.signals (connection_id, order_external_id) WHERE order_external_id IS NOT NULL;
CREATE INDEX decisions_visitor ON relay.decisions (connection_id, visitor_id) WHERE visitor_id IS NOT NULL OR session_id IS NOT NULL;
CREATE INDEX audit_record ON relay.audit (connection_id, record_id);
GRANT UPDATE (visitor_id, session_id) ON relay.signals, relay.decisions TO storefront_relay;
GRANT SELECT (connection_id, record_id, stored_at, received_at) ON relay.audit TO storefront_relay;
GRANT UPDATE (bytes) ON relay.parked TO storefront_relay;

-- blank_audit removes what identifies a person from audit rows and returns how many had any. The rows stay:
-- edges use them to see that signals were stored. The relay may call it, and may not read or write the audit
-- otherwise.
-- +goose StatementBegin
CREATE FUNCTION relay.blank_audit(of_connection text, records uuid[], since timestamptz, until timestamptz) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    blanked integer;
BEGIN
    UPDATE relay.audit
    SET ip = '', user_agent = '', accept_language = '', origin = '', referer = '', clients = NULL
    WHERE connection_id = of_connection AND record_id = ANY (records) AND stored_at BETWEEN since AND until
        AND NOT (ip = '' AND user_agent = '' AND accept_language = '' AND origin = '' AND referer = '' AND clients IS NULL);
    GET DIAGNOSTICS blanked = ROW_COUNT;
    RETURN blanked;
END
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION relay.blank_audit(text, uuid[], timestamptz, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION relay.blank_audit(text, uuid[], timestamptz, timestamptz) TO storefront_relay;

-- Requests of a platform about the data of a buyer or of a whole shop. request_id is the id of the webhook,
-- which names the person; orders are the external ids that it names. An operator completes a data_request.
CREATE TABLE control.privacy_requests (
    request_id    text COLLATE "C" PRIMARY KEY,
    connection_id text COLLATE "C" NOT NULL REFERENCES control.connections,
    kind          text             NOT NULL,
    orders        text[]           NOT NULL DEFAULT '{}',
    redacted      integer          NOT NULL DEFAULT 0,
    received_at   timestamptz      NOT NULL DEFAULT now(),
    completed_at  timestamptz,
    CONSTRAINT privacy_requests_kind CHECK (kind IN ('data_request', 'redact_customer', 'redact_store'))
);
CREATE INDEX privacy_requests_pending ON control.privacy_requests (received_at) WHERE completed_at IS NULL;
GRANT SELECT, INSERT ON control.privacy_requests TO storefront_control;
GRANT UPDATE (redacted, completed_at) ON control.privacy_requests TO storefront_control;

-- A redacted observation keeps its digest and serves nothing. A redacted order stays redacted: later fetches
-- of it are not archived.
ALTER TABLE control.observations ADD COLUMN redacted_at timestamptz;
CREATE INDEX observations_orders ON control.observations (connection_id, external_id) WHERE entity = 'order';
GRANT UPDATE (document, raw, redacted_at) ON control.observations TO storefront_control;
ALTER TABLE control.entities ADD COLUMN redacted_at timestamptz;
GRANT UPDATE (redacted_at) ON control.entities TO storefront_control;
CREATE INDEX webhook_deliveries_of_connection ON control.webhook_deliveries (connection_id, delivery_id);
GRANT UPDATE (raw) ON control.webhook_deliveries TO storefront_control;

-- Updates of the archive may only remove: all of the bytes as they came, the buyer of the document of an
-- order, and nothing of other documents. So control, which redacts, cannot change what was delivered to the
-- engine.
-- +goose StatementBegin
CREATE FUNCTION control.keep_archive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.raw IS DISTINCT FROM OLD.raw AND octet_length(NEW.raw) > 0 THEN
        RAISE insufficient_privilege USING MESSAGE = 'archived bytes are only taken away';
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION control.keep_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.document IS DISTINCT FROM OLD.document AND (OLD.entity <> 'order' OR NEW.redacted_at IS NULL) THEN
        RAISE insufficient_privilege USING MESSAGE = 'a document is only redacted, and only an order''s';
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER keep_archive BEFORE UPDATE OF raw ON control.observations FOR EACH ROW EXECUTE FUNCTION control.keep_archive();
CREATE TRIGGER keep_document BEFORE UPDATE OF document ON control.observations FOR EACH ROW EXECUTE FUNCTION control.keep_document();
CREATE TRIGGER keep_archive BEFORE UPDATE OF raw ON control.webhook_deliveries FOR EACH ROW EXECUTE FUNCTION control.keep_archive();
