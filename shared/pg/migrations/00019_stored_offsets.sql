-- How far the sink has stored each partition. The transaction that stores records adds their offsets, so that
-- a restored database knows what it lacks although the consumer group's offset in Kafka is ahead.

-- +goose Up

-- assignment is the member and generation of the consumer group that stores the partition; only it adds
-- offsets. cluster_id is the Kafka cluster that the offsets are of. stored begins with all offsets before the
-- assignment's start; it has a gap while concurrent transactions end out of order.
CREATE TABLE relay.stored_offsets (
    topic           text           NOT NULL,
    topic_partition integer        NOT NULL,
    cluster_id      text           NOT NULL,
    assignment      text           NOT NULL,
    stored          int8multirange NOT NULL,
    updated_at      timestamptz    NOT NULL DEFAULT now(),
    PRIMARY KEY (topic, topic_partition)
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
GRANT SELECT, INSERT, UPDATE ON relay.stored_offsets TO storefront_relay;
