-- +goose Up
-- Group roles of the services (a login role of a deployment is a member of one) and the schemas. Roles belong
-- to the whole cluster, so the migration of another database may have created them, or may be creating them
-- now.
-- +goose StatementBegin
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['storefront_edge', 'storefront_relay', 'storefront_control'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', name);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
    END LOOP;
END
$$;
-- +goose StatementEnd

CREATE SCHEMA control;
CREATE SCHEMA relay;
CREATE SCHEMA delivery;

-- Every service may read the schema version: a binary is not ready on an older schema than its own.
GRANT SELECT ON goose_db_version TO storefront_edge, storefront_relay, storefront_control;
