package dashboards

import "storefront.internal/deploy/observability/board"

func edge() board.Dashboard {
	const ops = `storefront_edge_http_request_duration_seconds`
	return board.Dashboard{UID: "storefront-edge", Title: "Storefront: edge", About: "The public surface: rate, errors, duration, and what stands behind it.", Rows: []board.Row{
		{Title: "Requests", Panels: []board.Panel{
			graph("By operation", board.PerSecond, q("{{operation}}", "%s", rate("operation", ops+"_count{@}"))),
			empty("no request fails on a healthy system", graph("5xx by operation", board.PerSecond, q("{{operation}} {{code}}", "%s", rate("operation, code", ops+`_count{@,code=~"5.."}`)))),
			graph("p99 by operation", board.Seconds, q("{{operation}}", "histogram_quantile(0.99, sum by (le, operation) (rate(%s_bucket{@}[$__rate_interval])))", ops)),
			graph("In work", board.Short, q("requests", "sum(storefront_edge_http_in_flight{@})"), q("reads of the catalog", "sum(storefront_edge_http_catalog_in_flight{@})"), q("connections", "sum(storefront_edge_http_connections{@})")),
			graph("Bodies in work", board.Bytes, q("{{instance}}", "storefront_edge_http_in_flight_bytes{@}")),
			empty("no problem is answered when clients and stores are well", graph("Problems", board.PerSecond, q("{{operation}} {{problem}}", "%s", rate("operation, problem", "storefront_edge_http_problems_total{@}")))),
			empty("nothing is refused below the limits", graph("Shed", board.PerSecond, q("{{reason}}", "%s", rate("reason", "storefront_edge_http_shed_total{@}")))),
			graph("Panics", board.Short, q("handlers", "sum(increase(storefront_edge_http_panics_total{@}[1h]))"), q("keys", "sum(increase(storefront_edge_key_panics_total{@}[1h]))"), q("items", "sum(increase(storefront_edge_item_panics_total{@}[1h]))")),
		}},
		{Title: "Signals", Panels: []board.Panel{
			graph("By status", board.PerSecond, q("{{status}}", "%s", rate("status", "storefront_edge_signals_total{@}"))),
			empty("sound clients are refused nothing", graph("Rejected, by reason", board.PerSecond, q("{{reason}}", "%s", rate("reason", `storefront_edge_signals_total{@,status="rejected"}`)))),
			graph("Batches answered 503, by cause", board.PerSecond, q("{{cause}}", "%s", rate("cause", "storefront_edge_signals_unavailable_total{@}"))),
			empty("claims are waited for only when a client resends while its first request runs", quantiles("Waited for claims", "storefront_edge_claim_wait_seconds", "{@}")),
			graph("Redis is cold; marks dropped", board.Short, q("cold", "max(storefront_edge_claims_cold{@})"), q("dropped", "sum(increase(storefront_edge_claim_marks_dropped_total{@}[$__rate_interval]))")),
			empty("the ledger is asked about late signals, and while Redis is cold", graph("Questions to the ledger", board.PerSecond, q("{{outcome}}", "%s", rate("outcome", "storefront_edge_ledger_lookups_total{@}")))),
		}},
		{Title: "Kafka", Panels: []board.Panel{
			graph("Records by outcome", board.PerSecond, q("{{topic}} {{outcome}}", "%s", rate("topic, outcome", "storefront_stream_produce_outcome_total{@}"))),
			graph("In flight", board.Bytes, q("{{topic}}", "sum by (topic) (storefront_stream_produce_pending_bytes{@})")),
			quantiles("Time of a flush", "storefront_stream_produce_flush_seconds", "{@}"),
			graph("Flushes tried again", board.PerSecond, q("{{topic}}", "%s", rate("topic", "storefront_stream_produce_retries_total{@}"))),
		}},
		{Title: "Keys, items, recommendations", Panels: []board.Panel{
			graph("Keys by what answered", board.PerSecond, q("{{source}}", "%s", rate("source", "storefront_edge_key_lookups_total{@}"))),
			graph("Age of the key version", board.Seconds, q("{{instance}}", "storefront_edge_key_cache_age_seconds{@}")),
			graph("Items by source", board.PerSecond, q("{{source}}", "%s", rate("source", "storefront_edge_item_reads_total{@}"))),
			graph("Items in memory", board.Bytes, q("{{instance}}", "storefront_edge_item_memory_bytes{@}")),
			graph("Recommendations by source", board.PerSecond, q("{{source}}", "%s", rate("source", "storefront_edge_recommendations_total{@}"))),
			graph("Questions to the engine", board.PerSecond, q("{{outcome}}", "%s", rate("outcome", "storefront_edge_engine_requests_total{@}"))),
		}},
		{Title: "Stores", Panels: append(postgresPanels("edge.*"),
			graph("Redis connections", board.Short, q("{{job}} {{state}}", "sum by (job, state) (storefront_redis_pool_connections{@})")),
			graph("Redis: timeouts, waits", board.PerSecond, q("timeouts", "%s", rate("", "storefront_redis_pool_timeouts_total{@}")), q("waits", "%s", rate("", "storefront_redis_pool_waits_total{@}"))))},
		processRow("edge"),
	}}
}
