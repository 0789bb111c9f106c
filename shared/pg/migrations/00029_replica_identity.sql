-- signals and audit have no primary key, which would cost an index of random keys; the ledger keeps signals unique.
-- Logical replication (an upgrade without a stop, change data capture) does not change their rows without a replica
-- identity. FULL writes the old row too, but only with wal_level = logical. Partitions do not inherit it.

-- +goose NO TRANSACTION
-- +goose Up

-- ensure_partitions creates the days from yesterday to days_ahead and returns how many whole days ahead exist for all
-- tables. A day whose rows are in the default partition already cannot be created: it is left out with a warning.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION relay.ensure_partitions(days_ahead integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET lock_timeout = '3s'
AS $$
DECLARE
    parent  text;
    name    text;
    today   date := (now() AT TIME ZONE 'UTC')::date;
    ahead   integer := days_ahead;
BEGIN
    IF days_ahead NOT BETWEEN 1 AND 60 THEN
        RAISE EXCEPTION 'days_ahead is %, want 1 to 60', days_ahead USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM pg_advisory_xact_lock(7233, 1);
    FOREACH parent IN ARRAY ARRAY['signals', 'audit', 'decisions'] LOOP
        FOR day IN -1..days_ahead LOOP
            name := format('%s_p%s', parent, to_char(today + day, 'YYYYMMDD'));
            CONTINUE WHEN to_regclass('relay.' || name) IS NOT NULL;
            BEGIN
                EXECUTE format('CREATE TABLE relay.%I (LIKE relay.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', name, parent);
                IF parent <> 'decisions' THEN
                    EXECUTE format('ALTER TABLE relay.%I REPLICA IDENTITY FULL', name);
                END IF;
                EXECUTE format('ALTER TABLE relay.%I ATTACH PARTITION relay.%I FOR VALUES FROM (%L) TO (%L)',
                    parent, name, (today + day)::timestamptz, (today + day + 1)::timestamptz);
            EXCEPTION WHEN check_violation THEN
                ahead := least(ahead, greatest(day - 1, 0));
                RAISE WARNING 'relay.%: rows of % lie in the default partition', parent, today + day;
            END;
        END LOOP;
    END LOOP;
    RETURN ahead;
END
$$;
-- +goose StatementEnd

-- Each table by itself, so that no transaction that uses several of them deadlocks with this one.
-- +goose StatementBegin
DO $$
DECLARE
    of_relay regclass;
BEGIN
    FOR of_relay IN
        SELECT c.oid
        FROM pg_class c
        LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
        WHERE 'relay.signals'::regclass IN (c.oid, i.inhparent) OR 'relay.audit'::regclass IN (c.oid, i.inhparent)
    LOOP
        CONTINUE WHEN (SELECT relreplident = 'f' FROM pg_class WHERE oid = of_relay);
        EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', of_relay);
        COMMIT;
    END LOOP;
END
$$;
-- +goose StatementEnd
