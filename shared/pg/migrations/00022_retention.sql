-- What is older than its retention leaves in small steps: a partition, or a page of rows, in a transaction.

-- +goose Up

-- drop_partition drops the oldest partition of a table of the schema that lies wholly before the date, and says whether
-- there was one. The sink writes to the table meanwhile and queues behind the lock on it, so the locks are waited for
-- as briefly as this: not at all for the partition, which a dump may read for hours; 50 ms for the default partition and
-- 100 ms for the table. When one is not granted, the call fails with lock_not_available and is repeated later.
-- DETACH CONCURRENTLY does not work beside a default partition.
-- +goose StatementBegin
CREATE FUNCTION relay.drop_partition(of_table text, before date) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET lock_timeout = '50ms'
AS $$
DECLARE
    child name;
BEGIN
    IF of_table NOT IN ('signals', 'audit', 'decisions') THEN
        RAISE EXCEPTION 'of_table is %, want signals, audit or decisions', of_table USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF before > (now() AT TIME ZONE 'UTC')::date - 7 THEN
        RAISE EXCEPTION 'before is %, which is younger than seven days', before USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM pg_advisory_xact_lock(7233, 1);
    SELECT min(c.relname) INTO child
    FROM pg_inherits i
    JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = format('relay.%I', of_table)::regclass AND c.relname ~ '_p[0-9]{8}$'
      AND to_date(right(c.relname, 8), 'YYYYMMDD') < before;
    IF child IS NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('LOCK TABLE relay.%I IN ACCESS EXCLUSIVE MODE NOWAIT', child);
    EXECUTE format('LOCK TABLE relay.%I IN ACCESS EXCLUSIVE MODE', of_table || '_default');
    PERFORM set_config('lock_timeout', '100ms', true);
    EXECUTE format('LOCK TABLE ONLY relay.%I IN ACCESS EXCLUSIVE MODE', of_table);
    EXECUTE format('DROP TABLE relay.%I', child);
    RETURN true;
END
$$;

CREATE FUNCTION control.drop_partition(of_table text, before date) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET lock_timeout = '50ms'
AS $$
DECLARE
    child name;
BEGIN
    IF of_table NOT IN ('observations', 'webhook_deliveries') THEN
        RAISE EXCEPTION 'of_table is %, want observations or webhook_deliveries', of_table USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF before > (now() AT TIME ZONE 'UTC')::date - 30 THEN
        RAISE EXCEPTION 'before is %, which is younger than thirty days', before USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM pg_advisory_xact_lock(7233, 2);
    SELECT min(c.relname) INTO child
    FROM pg_inherits i
    JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = format('control.%I', of_table)::regclass AND c.relname ~ '_p[0-9]{8}$'
      AND to_date(right(c.relname, 8), 'YYYYMMDD') < before;
    IF child IS NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('LOCK TABLE control.%I IN ACCESS EXCLUSIVE MODE NOWAIT', child);
    EXECUTE format('LOCK TABLE control.%I IN ACCESS EXCLUSIVE MODE', of_table || '_default');
    PERFORM set_config('lock_timeout', '100ms', true);
    EXECUTE format('LOCK TABLE ONLY control.%I IN ACCESS EXCLUSIVE MODE', of_table);
    EXECUTE format('DROP TABLE control.%I', child);
    RETURN true;
END
$$;

-- The previous release calls drop_partitions beside this one: it drops one partition of each table.
CREATE OR REPLACE FUNCTION relay.drop_partitions(before date) RETURNS integer
LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
RETURN relay.drop_partition('signals', before)::integer + relay.drop_partition('audit', before)::integer
    + relay.drop_partition('decisions', before)::integer;

CREATE OR REPLACE FUNCTION control.drop_partitions(before date) RETURNS integer
LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
RETURN control.drop_partition('observations', before)::integer + control.drop_partition('webhook_deliveries', before)::integer;

-- purge_cart_lines deletes the lines of a page of the table, by its blocks, that were last changed before the instant, and
-- returns how many; no index of the time is needed, which would make each change of a line more expensive. next_block is where
-- the next page begins, NULL after the last one.
CREATE FUNCTION relay.purge_cart_lines(before timestamptz, first_block bigint, blocks integer,
    OUT deleted integer, OUT next_block bigint)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF before > now() - interval '7 days' THEN
        RAISE EXCEPTION 'before is %, which is younger than seven days', before USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF first_block < 0 OR blocks NOT BETWEEN 1 AND 10000 THEN
        RAISE EXCEPTION 'page % of % blocks, want 0 or more and 1 to 10000', first_block, blocks USING ERRCODE = 'invalid_parameter_value';
    END IF;
    DELETE FROM relay.cart_lines
    WHERE ctid >= format('(%s,0)', first_block)::tid AND ctid < format('(%s,0)', first_block + blocks)::tid
      AND updated_at < before;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    next_block := first_block + blocks;
    IF next_block >= pg_relation_size('relay.cart_lines') / current_setting('block_size')::integer THEN
        next_block := NULL;
    END IF;
END
$$;

-- purge_bootstrap_runs deletes the oldest ended runs that were opened before the instant, up to most, and returns how
-- many. The last run of a connection and its last completed one stay.
CREATE FUNCTION control.purge_bootstrap_runs(before timestamptz, most integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    deleted integer;
BEGIN
    IF before > now() - interval '30 days' THEN
        RAISE EXCEPTION 'before is %, which is younger than thirty days', before USING ERRCODE = 'invalid_parameter_value';
    END IF;
    DELETE FROM control.bootstrap_runs
    WHERE bootstrap_run_id IN (
        SELECT r.bootstrap_run_id
        FROM control.bootstrap_runs r
        WHERE r.created_at < before AND r.state IN ('completed', 'failed') AND EXISTS (
            SELECT FROM control.bootstrap_runs newer
            WHERE newer.connection_id = r.connection_id AND newer.created_at > r.created_at
                AND (newer.state = 'completed' OR r.state = 'failed'))
        ORDER BY r.created_at
        LIMIT most);
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END
$$;
-- +goose StatementEnd

REVOKE ALL ON FUNCTION relay.drop_partition(text, date), relay.purge_cart_lines(timestamptz, bigint, integer),
    control.drop_partition(text, date), control.purge_bootstrap_runs(timestamptz, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION relay.drop_partition(text, date), relay.purge_cart_lines(timestamptz, bigint, integer) TO storefront_relay;
GRANT EXECUTE ON FUNCTION control.drop_partition(text, date), control.purge_bootstrap_runs(timestamptz, integer) TO storefront_control;
