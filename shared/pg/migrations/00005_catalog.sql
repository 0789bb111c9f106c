-- Schema control: the catalog. What connectors delivered (observations), which revision of each entity is
-- applied (entities), what shoppers read (aggregates) and the tree of categories (taxonomy_nodes,
-- item_taxonomy). Each transaction takes its locks in the order entities, taxonomy_nodes, aggregates, each by
-- key. Rows of these tables are never deleted, except links of items, so a key that was found stays.

-- +goose Up

-- The archive: all observations, whatever the result of the compare-and-set, except duplicates, whose content
-- is there already. raw: the exact bytes as they came (of a custom connection the whole element, including
-- its raw and document; of a platform the body of its answer). document: the exact bytes that read_canonical
-- serves, of accepted upserts only. minted_at is the millisecond that the id itself carries, so an id leads
-- to one day. state: accepted; stale and conflict (archived, not applied); quarantined (reason names rule and
-- pointer), which replay_quarantined turns into replayed (its content was accepted as another observation) or
-- superseded (a newer revision was applied meanwhile).
CREATE TABLE control.observations (
    observation_id    text COLLATE "C" NOT NULL,
    minted_at         timestamptz      NOT NULL,
    connection_id     text COLLATE "C" NOT NULL,
    entity            text COLLATE "C" NOT NULL,
    external_id       text COLLATE "C" NOT NULL,
    revision          bigint           NOT NULL,
    operation         text             NOT NULL,
    state             text             NOT NULL,
    reason            text,
    content_digest    text,
    document          bytea,
    raw               bytea            NOT NULL,
    source_updated_at timestamptz,
    received_at       timestamptz      NOT NULL DEFAULT now(),
    PRIMARY KEY (observation_id, minted_at),
    CONSTRAINT observations_entity CHECK (entity IN ('product', 'category', 'order')),
    CONSTRAINT observations_revision CHECK (revision >= 1),
    CONSTRAINT observations_state
        CHECK (state IN ('accepted', 'stale', 'conflict', 'quarantined', 'replayed', 'superseded')),
    CONSTRAINT observations_reason CHECK ((reason IS NOT NULL) = (state IN ('quarantined', 'replayed', 'superseded'))),
    CONSTRAINT observations_digest CHECK (state <> 'accepted' OR content_digest IS NOT NULL),
    CONSTRAINT observations_document CHECK ((document IS NOT NULL) = (state = 'accepted' AND operation = 'upsert'))
) PARTITION BY RANGE (minted_at);
CREATE INDEX observations_quarantined ON control.observations (connection_id, observation_id)
    WHERE state = 'quarantined';
CREATE TABLE control.observations_default PARTITION OF control.observations DEFAULT;
GRANT SELECT, INSERT ON control.observations TO storefront_control;
GRANT UPDATE (state, reason) ON control.observations TO storefront_control;
GRANT SELECT (minted_at) ON control.observations_default TO storefront_control;

-- The applied revision of each entity, and its observation. The row of a deleted entity stays as the
-- tombstone. revision 0 is a row that was inserted to be locked, and is never committed.
CREATE TABLE control.entities (
    connection_id  text COLLATE "C" NOT NULL,
    entity         text COLLATE "C" NOT NULL,
    external_id    text COLLATE "C" NOT NULL,
    revision       bigint           NOT NULL DEFAULT 0,
    operation      text             NOT NULL DEFAULT '',
    content_digest text             NOT NULL DEFAULT '',
    observation_id text COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (connection_id, entity, external_id)
) WITH (fillfactor = 80);
GRANT SELECT, INSERT ON control.entities TO storefront_control;
GRANT UPDATE (revision, operation, content_digest, observation_id) ON control.entities TO storefront_control;

-- The taxonomy of a shop. document: the canonical bytes of the document of the category, NULL while there is
-- none (an item named the node first, or the category was deleted). A transaction that writes an item holds
-- its nodes FOR SHARE until the commit, so a change of the category waits for the links of the item, or the
-- item sees the change.
CREATE TABLE control.taxonomy_nodes (
    connection_id text COLLATE "C" NOT NULL,
    taxonomy_id   text COLLATE "C" NOT NULL,
    document      bytea,
    PRIMARY KEY (connection_id, taxonomy_id)
) WITH (fillfactor = 80);
GRANT SELECT, INSERT ON control.taxonomy_nodes TO storefront_control;
GRANT UPDATE (document) ON control.taxonomy_nodes TO storefront_control;

-- The items of each node: the inverse of taxonomy_ids of aggregates.
CREATE TABLE control.item_taxonomy (
    connection_id text COLLATE "C" NOT NULL,
    taxonomy_id   text COLLATE "C" NOT NULL,
    item_id       text COLLATE "C" NOT NULL,
    PRIMARY KEY (connection_id, taxonomy_id, item_id)
);
GRANT SELECT, INSERT, DELETE ON control.item_taxonomy TO storefront_control;

-- What getCatalogItem serves. refresh_revision rises with each accepted change of the item and with each
-- visible change of its categories, also across deletion and re-creation. document: the canonical bytes of
-- the item with its taxonomy as delivered; body: the exact bytes of the response. Both are NULL for a deleted
-- item.
CREATE TABLE control.aggregates (
    connection_id    text COLLATE "C"   NOT NULL,
    item_id          text COLLATE "C"   NOT NULL,
    refresh_revision bigint             NOT NULL,
    document         bytea,
    body             bytea,
    taxonomy_ids     text[] COLLATE "C" NOT NULL DEFAULT '{}',
    sellable         boolean            NOT NULL,
    refreshed_at     timestamptz        NOT NULL DEFAULT now(),
    PRIMARY KEY (connection_id, item_id),
    CONSTRAINT aggregates_revision CHECK (refresh_revision >= 1),
    CONSTRAINT aggregates_whole CHECK ((document IS NULL) = (body IS NULL)),
    CONSTRAINT aggregates_sellable CHECK (body IS NOT NULL OR NOT sellable)
) WITH (fillfactor = 80);
CREATE INDEX aggregates_sellable_newest ON control.aggregates (connection_id, refreshed_at DESC, item_id)
    WHERE sellable;
GRANT SELECT, INSERT ON control.aggregates TO storefront_control;
GRANT UPDATE (refresh_revision, document, body, taxonomy_ids, sellable, refreshed_at) ON control.aggregates
    TO storefront_control;
GRANT SELECT (connection_id, item_id, refresh_revision, body, sellable, refreshed_at) ON control.aggregates
    TO storefront_edge;

-- ensure_partitions creates the days of the archive from yesterday to days_ahead and returns how many whole
-- days ahead exist. A day whose rows are in the default partition already cannot be created: it is left out
-- with a warning.
-- +goose StatementBegin
CREATE FUNCTION control.ensure_partitions(days_ahead integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET lock_timeout = '3s'
AS $$
DECLARE
    name  text;
    today date := (now() AT TIME ZONE 'UTC')::date;
    ahead integer := days_ahead;
BEGIN
    IF days_ahead NOT BETWEEN 1 AND 60 THEN
        RAISE EXCEPTION 'days_ahead is %, want 1 to 60', days_ahead USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM pg_advisory_xact_lock(7233, 2);
    FOR day IN -1..days_ahead LOOP
        name := format('observations_p%s', to_char(today + day, 'YYYYMMDD'));
        CONTINUE WHEN to_regclass('control.' || name) IS NOT NULL;
        BEGIN
            EXECUTE format('CREATE TABLE control.%I (LIKE control.observations INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)', name);
            EXECUTE format('ALTER TABLE control.observations ATTACH PARTITION control.%I FOR VALUES FROM (%L) TO (%L)',
                name, (today + day)::timestamptz, (today + day + 1)::timestamptz);
        EXCEPTION WHEN check_violation THEN
            ahead := least(ahead, greatest(day - 1, 0));
            RAISE WARNING 'control.observations: rows of % lie in the default partition', today + day;
        END;
    END LOOP;
    RETURN ahead;
END
$$;
-- +goose StatementEnd

-- drop_partitions drops the days of the archive that lie wholly before the date and returns the number. It
-- never drops the last thirty days: deliveries to the engine may still refer to them.
-- +goose StatementBegin
CREATE FUNCTION control.drop_partitions(before date) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET lock_timeout = '3s'
AS $$
DECLARE
    child   name;
    dropped integer := 0;
BEGIN
    IF before > (now() AT TIME ZONE 'UTC')::date - 30 THEN
        RAISE EXCEPTION 'before is %, which is younger than thirty days', before USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM pg_advisory_xact_lock(7233, 2);
    FOR child IN
        SELECT c.relname
        FROM pg_inherits i
        JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'control.observations'::regclass
          AND c.relname ~ '_p[0-9]{8}$'
          AND to_date(right(c.relname, 8), 'YYYYMMDD') < before
        ORDER BY c.relname
    LOOP
        EXECUTE format('DROP TABLE control.%I', child);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END
$$;
-- +goose StatementEnd

SELECT control.ensure_partitions(7);

REVOKE ALL ON FUNCTION control.ensure_partitions(integer), control.drop_partitions(date) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION control.ensure_partitions(integer), control.drop_partitions(date) TO storefront_control;
