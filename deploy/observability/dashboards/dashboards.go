// Package dashboards owns what our four dashboards show. A panel whose queries are legally empty on a healthy system says why in Empty; all others are run against a real Prometheus under load, and must bring data.
package dashboards

import (
	"fmt"

	"storefront.internal/deploy/observability/board"
)

// All returns the dashboards by the name of their file.
func All() map[string]board.Dashboard {
	return map[string]board.Dashboard{
		"storefront-overview.json": overview(), "storefront-edge.json": edge(), "storefront-relay.json": relay(), "storefront-control.json": control(),
	}
}

func q(legend, format string, args ...any) board.Query {
	return board.Query{Expr: fmt.Sprintf(format, args...), Legend: legend}
}

func graph(title string, unit board.Unit, queries ...board.Query) board.Panel {
	return board.Panel{Title: title, Unit: unit, Queries: queries}
}

func stat(title string, unit board.Unit, expr string) board.Panel {
	return board.Panel{Title: title, Unit: unit, Stat: true, Width: 4, Queries: []board.Query{{Expr: expr}}}
}

// empty marks a panel that has no data while nothing is wrong.
func empty(reason string, p board.Panel) board.Panel {
	p.Empty = reason
	return p
}

// rate is a counter's rate, summed by labels ("" for none).
func rate(by, metric string) string {
	if by == "" {
		return fmt.Sprintf("sum(rate(%s[$__rate_interval]))", metric)
	}
	return fmt.Sprintf("sum by (%s) (rate(%s[$__rate_interval]))", by, metric)
}

// quantiles shows the median, p90 and p99 of a classic histogram; selectors without braces, e.g. `{@}`.
func quantiles(title, histogram, selectors string) board.Panel {
	p := board.Panel{Title: title, Unit: board.Seconds}
	for _, share := range []string{"0.5", "0.9", "0.99"} {
		p.Queries = append(p.Queries, q("p"+share[2:], "histogram_quantile(%s, sum by (le) (rate(%s_bucket%s[$__rate_interval])))", share, histogram, selectors))
	}
	return p
}

// processRow is how the processes of a service are.
func processRow(service string) board.Row {
	of := fmt.Sprintf(`* on (namespace, job, instance) group_left (service) storefront_build_info{@,service="%s"}`, service)
	return board.Row{Title: "Processes", Panels: []board.Panel{
		graph("CPU", board.Short, q("{{instance}}", "rate(process_cpu_seconds_total{@}[$__rate_interval]) %s", of)),
		graph("Memory", board.Bytes, q("{{instance}}", "process_resident_memory_bytes{@} %s", of)),
		graph("Goroutines", board.Short, q("{{instance}}", "go_goroutines{@} %s", of)),
	}}
}

// postgresPanels are how the pools of a service are used.
func postgresPanels(pool string) []board.Panel {
	sel := fmt.Sprintf(`{@,pool=~"%s"}`, pool)
	return []board.Panel{
		graph("PostgreSQL connections", board.Short, q("{{pool}} {{state}}", "sum by (pool, state) (storefront_postgres_pool_connections%s)", sel), q("{{pool}} most", "sum by (pool) (storefront_postgres_pool_max_connections%s)", sel)),
		graph("PostgreSQL: acquired, waited for", board.PerSecond, q("{{pool}} acquired", "%s", rate("pool", "storefront_postgres_pool_acquires_total"+sel)), q("{{pool}} waited", "%s", rate("pool", "storefront_postgres_pool_waits_total"+sel))),
		graph("PostgreSQL: time to get a connection", board.Seconds, q("{{pool}}", "%s / (%s > 0)", rate("pool", "storefront_postgres_pool_wait_seconds_total"+sel), rate("pool", "storefront_postgres_pool_acquires_total"+sel))),
	}
}
