// Package alerts owns the rules that watch Storefront: recording rules, service levels with their burn rates, and alerts on causes, each with the input that makes it fire in promtool.
//
// The rules file is made from these tables, so that an alert without a test, a severity or a runbook cannot be written. The package refuses templates with values in annotations: what a person should do does not depend on the figure.
package alerts

import "fmt"

// Severity says who is told.
type Severity string

// The severities: page wakes somebody, ticket is for working hours, info is seen on dashboards.
const (
	Page   Severity = "page"
	Ticket Severity = "ticket"
	Info   Severity = "info"
)

// Alert is one alerting rule.
type Alert struct {
	Name        string
	Expr        string
	For         string // "" fires at once
	Severity    Severity
	Labels      map[string]string // beside severity
	Summary     string
	Description string
	Runbook     string // file of deploy/runbooks that has a heading with the alert's name

	Fires Case // what makes it fire
}

// Case is an input under which an alert fires, and the labels of what fires.
type Case struct {
	Series []string // in promtool's notation: `metric{labels} values`, a sample a minute
	After  string   // when it is looked at; "" is an hour
	Labels []map[string]string
}

// Record is one recording rule.
type Record struct{ Name, Expr string }

// Group is one group of rules.
type Group struct {
	Name    string
	Records []Record
	Alerts  []Alert
}

// RunbookBase is what a runbook's address begins with: its place in the repository, since only the reader knows where that is to be
// read. The chart puts monitoring.prometheusRule.runbookUrl in its place.
const RunbookBase = "deploy/runbooks/"

// Groups returns all rules.
func Groups() []Group {
	groups := []Group{{Name: "storefront-figures", Records: figures()}}
	for _, s := range levels() {
		groups = append(groups, s.group())
	}
	return append(groups,
		Group{Name: "storefront-delivery", Alerts: delivery()},
		Group{Name: "storefront-sink", Alerts: sink()},
		Group{Name: "storefront-edge", Alerts: edge()},
		Group{Name: "storefront-control", Alerts: control()},
		Group{Name: "storefront-processes", Alerts: processes()},
	)
}

// figures are what several rules and dashboards need.
func figures() []Record {
	return []Record{
		{"storefront:consumer_lag_records:sum", `sum by (namespace, topic) (max by (namespace, topic, partition) (storefront_relay_consumer_lag_records))`},
		{"storefront:sink_dedup:ratio_rate15m", `sum by (namespace) (rate(storefront_relay_sink_signals_total{result="deduplicated"}[15m])) / (sum by (namespace) (rate(storefront_relay_sink_signals_total[15m])) > 0)`},
		{"storefront:produce_unknown:ratio_rate15m", `sum by (namespace) (rate(storefront_stream_produce_outcome_total{outcome="unknown"}[15m])) / (sum by (namespace) (rate(storefront_stream_produce_outcome_total[15m])) > 0)`},
	}
}

// steady is a series that stays at a value for a day.
func steady(series string, value int) string { return fmt.Sprintf("%s %dx1440", series, value) }

// rising is a counter that grows by so much a minute for a day.
func rising(series string, by int) string { return fmt.Sprintf("%s 0+%dx1440", series, by) }

// once is a case of one series' labels.
func once(labels map[string]string, series ...string) Case {
	return Case{Series: series, Labels: []map[string]string{labels}}
}

type l = map[string]string
