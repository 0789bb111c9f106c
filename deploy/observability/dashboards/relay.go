package dashboards

import "storefront.internal/deploy/observability/board"

func relay() board.Dashboard {
	return board.Dashboard{UID: "storefront-relay", Title: "Storefront: relay and queue", About: "From Kafka into PostgreSQL, and from there to the engine.", Rows: []board.Row{
		{Title: "From Kafka", Panels: []board.Panel{
			graph("Records that wait", board.Short, q("{{topic}}", "sum by (topic) (storefront:consumer_lag_records:sum{@})")),
			graph("Oldest unread record", board.Seconds, q("in Kafka", "max(storefront_relay_oldest_unread_seconds{@})"), q("read, not stored", "max(storefront_relay_oldest_held_seconds{@})")),
			graph("Generations joined, rebuilt", board.Short, q("joined", "sum(increase(storefront_relay_consumer_generations_total{@}[$__rate_interval]))"), q("rebuilt", "sum(increase(storefront_relay_consumer_rebuild_total{@}[$__rate_interval]))")),
			graph("Halted partitions, parked records", board.Short, q("halted", "sum(storefront_relay_halted_partitions{@})"), q("parked", "max(storefront_relay_parked_records{@})")),
			empty("no fetch fails while the brokers are well", graph("Failed fetches", board.PerSecond, q("{{topic}}", "%s", rate("topic", "storefront_relay_consumer_fetch_errors_total{@}")))),
			graph("Failed commits of offsets", board.PerSecond, q("failed", "%s", rate("", "storefront_relay_offset_commit_failures_total{@}"))),
		}},
		{Title: "Into PostgreSQL", Panels: []board.Panel{
			graph("Signals by result", board.PerSecond, q("{{result}}", "%s", rate("result", "storefront_relay_sink_signals_total{@}"))),
			quantiles("Time of a transaction", "storefront_relay_sink_seconds", "{@}"),
			graph("Signals in a transaction", board.Short, q("mean", "%s / (%s > 0)", rate("", "storefront_relay_sink_batch_size_sum{@}"), rate("", "storefront_relay_sink_batch_size_count{@}"))),
			quantiles("Arrival to stored", "storefront_relay_sink_delay_seconds", "{@}"),
			empty("no transaction fails while PostgreSQL is well", graph("Transactions tried again", board.PerSecond, q("{{class}}", "%s", rate("class", "storefront_relay_sink_retries_total{@}")))),
			graph("Days ahead, rows without a day", board.Short, q("relay, days", "min(storefront_relay_partition_days_ahead{@})"), q("control, days", "min(storefront_control_partition_days_ahead{@})"), q("rows", "max(storefront_relay_default_partition_rows{@})")),
		}},
		{Title: "Queue", Panels: []board.Panel{
			graph("Pending", board.Short, q("{{kind}}", "max by (kind) (storefront_engine_pending{@})")),
			graph("Oldest pending", board.Seconds, q("{{kind}}", "max by (kind) (storefront_engine_oldest_pending_seconds{@})")),
			graph("Unconfirmed, dead in 24 h", board.Short, q("{{kind}} unconfirmed", "max by (kind) (storefront_engine_unconfirmed_creations{@})"), q("{{kind}} dead", "max by (kind) (storefront_engine_dead_last_24h{@})")),
			graph("Worker state", board.Short, q("{{state}}", "max by (state) (storefront_engine_worker_state{@})")),
			graph("Time in blocked", board.Seconds, q("blocked for", "max((time() - storefront_engine_blocked_since_timestamp_seconds{@}) * (storefront_engine_blocked_since_timestamp_seconds{@} > bool 0))")),
			graph("Breaker open", board.Short, q("{{kind}}", "max by (kind) (storefront_engine_breaker_open{@})")),
		}},
		{Title: "To the engine", Panels: []board.Panel{
			graph("Deliveries by outcome", board.PerSecond, q("{{kind}} {{outcome}}", "%s", rate("kind, outcome", "storefront_engine_delivery_total{@}"))),
			graph("Requests by answer", board.PerSecond, q("{{kind}} {{answer}}", "%s", rate("kind, answer", "storefront_engine_request_total{@}"))),
			quantiles("Time of a request", "storefront_engine_request_seconds", "{@}"),
			graph("Deliveries in a request", board.Short, q("{{kind}}", "%s / (%s > 0)", rate("kind", "storefront_engine_request_deliveries_sum{@}"), rate("kind", "storefront_engine_request_deliveries_count{@}"))),
			quantiles("Queued to confirmed: interactions", "storefront_engine_delivery_delay_seconds", `{@,kind="interaction"}`),
			graph("Leases lost", board.PerSecond, q("lost", "%s", rate("", "storefront_engine_lease_lost_total{@}"))),
		}},
		{Title: "Stores", Panels: postgresPanels("relay")},
		processRow("engine-relay"),
	}}
}
