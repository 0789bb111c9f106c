package dashboards

import "storefront.internal/deploy/observability/board"

func control() board.Dashboard {
	const ops = "storefront_control_http_request_duration_seconds"
	return board.Dashboard{UID: "storefront-control", Title: "Storefront: control", About: "The internal surface, shops and their installations, jobs and the catalog.", Rows: []board.Row{
		{Title: "Requests", Panels: []board.Panel{
			graph("By operation", board.PerSecond, q("{{operation}}", "%s", rate("operation", ops+"_count{@}"))),
			empty("no request fails on a healthy system", graph("5xx by operation", board.PerSecond, q("{{operation}} {{code}}", "%s", rate("operation, code", ops+`_count{@,code=~"5.."}`)))),
			graph("p99 by operation", board.Seconds, q("{{operation}}", "histogram_quantile(0.99, sum by (le, operation) (rate(%s_bucket{@}[$__rate_interval])))", ops)),
			graph("Bodies of operation 4", board.Bytes, q("buffered", "sum(storefront_control_observation_body_bytes{@})")),
			graph("Panics", board.Short, q("handlers", "sum(increase(storefront_control_http_panics_total{@}[1h]))"), q("jobs", "sum(increase(storefront_control_job_panics_total{@}[1h]))")),
		}},
		{Title: "Shops", Panels: []board.Panel{
			graph("Installations", board.Short, q("{{state}}", "max by (state) (storefront_control_installations{@})")),
			graph("Oldest installation, stillest load", board.Seconds, q("installation", "max(storefront_control_oldest_installation_seconds{@})"), q("load", "max(storefront_control_bootstrap_standstill_seconds{@})")),
			graph("Loads", board.Short, q("{{state}}", "max by (state) (storefront_control_bootstrap_runs{@})")),
			graph("Notifications", board.PerSecond, q("{{provider}} {{kind}}", "%s", rate("provider, kind", "storefront_control_webhook_deliveries_total{@}")), q("refused", "%s", rate("", "storefront_control_webhook_refused_total{@}"))),
			graph("Entities fetched", board.PerSecond, q("{{provider}} {{status}}", "%s", rate("provider, status", "storefront_control_fetched_entities_total{@}"))),
			empty("providers answer", graph("Fetches that brought nothing", board.PerSecond, q("{{reason}}", "%s", rate("reason", "storefront_control_fetch_failures_total{@}")))),
			empty("no step of an installation fails while providers answer", graph("Failed steps of installations", board.Short, q("{{provider}} {{reason}}", "sum by (provider, reason) (increase(storefront_control_installation_failures_total{@}[1h]))"))),
			graph("Sealed secrets", board.Short, q("{{table}} {{key}}", "max by (table, key) (storefront_control_sealed_secrets{@})")),
		}},
		{Title: "Catalog", Panels: []board.Panel{
			graph("Observations", board.PerSecond, q("{{entity}} {{status}}", "%s", rate("entity, status", "storefront_control_observations_total{@}"))),
			graph("Quarantine", board.Short, q("waiting", "max(storefront_control_quarantine_size{@})")),
			quantiles("Operation 4: body to commit", "storefront_control_observation_batch_seconds", "{@}"),
			graph("Items pushed to Redis", board.PerSecond, q("{{result}}", "%s", rate("result", "storefront_control_item_pushes_total{@}"))),
			graph("Oldest push of items", board.Seconds, q("waits", "max(storefront_control_item_push_lag_seconds{@})")),
			graph("Key version", board.Short, q("{{store}}", "max by (store) (storefront_control_key_version{@})")),
		}},
		{Title: "Jobs", Panels: []board.Panel{
			graph("Worked, by outcome", board.PerSecond, q("{{outcome}}", "%s", rate("outcome", "storefront_control_job_duration_seconds_count{@}"))),
			graph("p90 by kind", board.Seconds, q("{{kind}}", "histogram_quantile(0.9, sum by (le, kind) (rate(storefront_control_job_duration_seconds_bucket{@}[$__rate_interval])))")),
			graph("Waiting and given up", board.Short, q("{{queue}} {{state}}", "max by (queue, state) (storefront_control_jobs{@})")),
		}},
		{Title: "Stores", Panels: postgresPanels("control")},
		processRow("control"),
	}}
}
