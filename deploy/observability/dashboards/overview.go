package dashboards

import "storefront.internal/deploy/observability/board"

func overview() board.Dashboard {
	burn := func(level string) board.Panel {
		p := board.Panel{Title: "Bad share: " + level, Unit: board.Share, Width: 6}
		for _, span := range []string{"5m", "1h", "6h"} {
			p.Queries = append(p.Queries, q(span, "storefront:%s:error_ratio_rate%s{@}", level, span))
		}
		return p
	}
	ops := `storefront_edge_http_request_duration_seconds`
	return board.Dashboard{UID: "storefront-overview", Title: "Storefront: overview", About: "Service levels, the way of a signal, and what waits.", Rows: []board.Row{
		{Title: "Now", Panels: []board.Panel{
			stat("Signals accepted", board.PerSecond, rate("", `storefront_edge_signals_total{@,status="accepted"}`)),
			stat("Signals stored", board.PerSecond, rate("", `storefront_relay_sink_signals_total{@,result="stored"}`)),
			stat("Signals delivered", board.PerSecond, rate("", `storefront_engine_delivery_total{@,kind="interaction",outcome="delivered"}`)),
			stat("Waiting for the engine", board.Short, `sum(max by (namespace, kind) (storefront_engine_pending{@}))`),
			stat("Waiting in Kafka", board.Short, `sum(storefront:consumer_lag_records:sum{@})`),
			stat("Dead in 24 h", board.Short, `sum(max by (namespace, kind) (storefront_engine_dead_last_24h{@}))`),
		}},
		{Title: "Service levels", Panels: []board.Panel{burn("signals_availability"), burn("signals_latency"), burn("signals_stored"), burn("signals_delivered")}},
		{Title: "The way of a signal", Panels: []board.Panel{
			graph("Accepted, stored, delivered", board.PerSecond, q("accepted", "%s", rate("", `storefront_edge_signals_total{@,status="accepted"}`)),
				q("stored", "%s", rate("", `storefront_relay_sink_signals_total{@,result="stored"}`)), q("delivered", "%s", rate("", `storefront_engine_delivery_total{@,kind="interaction",outcome="delivered"}`))),
			quantiles("Arrival to stored", "storefront_relay_sink_delay_seconds", "{@}"),
			quantiles("Stored to confirmed by the engine", "storefront_engine_delivery_delay_seconds", `{@,kind="interaction"}`),
		}},
		{Title: "Surfaces", Panels: []board.Panel{
			graph("Public requests by status", board.PerSecond, q("{{code}}", "%s", rate("code", ops+"_count{@}"))),
			quantiles("Operation 1: time to answer", ops, `{@,operation="recordStorefrontSignals"}`),
			graph("Internal requests by status", board.PerSecond, q("{{code}}", "%s", rate("code", "storefront_control_http_request_duration_seconds_count{@}"))),
		}},
		{Title: "Health", Panels: []board.Panel{
			graph("Stores that answer", board.Short, q("Redis {{job}}", "min by (job) (storefront_redis_up{@})"), q("PostgreSQL {{job}}", "min by (job) (storefront_postgres_up{@})")),
			graph("Worker state", board.Short, q("{{state}}", "max by (state) (storefront_engine_worker_state{@})")),
			empty("no alert fires on a healthy system", graph("Alerts that fire", board.Short, q("{{alertname}}", `count by (alertname) (ALERTS{@,alertname=~"Storefront.*",alertstate="firing"})`))),
			graph("Processes by version", board.Short, q("{{service}} {{version}}", "count by (service, version) (storefront_build_info{@})")),
		}},
	}}
}
