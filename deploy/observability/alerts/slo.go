package alerts

import (
	"fmt"
	"strings"
)

// level is a service level: the share of good events that is promised over 30 days.
type level struct {
	name      string // of the recording rules
	alert     string
	objective float64
	bad       string // rate of bad events over [%s]
	total     string // rate of all events over [%s]
	promise   string
	fires     []string
}

// window is one pair of windows and the burn rate that both must exceed: 14.4 spends 2 % of 30 days' budget in an hour.
type window struct {
	long, short string
	burn        float64
	severity    Severity
	wait        string
}

func windows() []window {
	return []window{
		{"1h", "5m", 14.4, Page, "2m"},
		{"6h", "30m", 6, Page, "15m"},
		{"1d", "2h", 3, Ticket, "1h"},
		{"3d", "6h", 1, Ticket, "3h"},
	}
}

// spans are all windows that a ratio is recorded over.
func spans() []string { return []string{"5m", "30m", "1h", "2h", "6h", "1d", "3d"} }

func levels() []level {
	const requests = `storefront_edge_http_request_duration_seconds`
	slow := func(histogram, labels, le string) string {
		return fmt.Sprintf(`(sum by (namespace) (rate(%[1]s_count{%[2]s}[%%[1]s])) - sum by (namespace) (rate(%[1]s_bucket{%[2]sle=~"%[3]s"}[%%[1]s])))`, histogram, labels, le)
	}
	count := func(histogram, labels string) string {
		return fmt.Sprintf(`sum by (namespace) (rate(%s_count{%s}[%%[1]s]))`, histogram, labels)
	}
	const op, taken = `operation="recordStorefrontSignals"`, `operation="recordStorefrontSignals",code="202"`
	failed := fmt.Sprintf(`(sum by (namespace) (rate(%s_count{%s,code=~"5.."}[%%[1]s])) or 0 * %s)`, requests, op, count(requests, op))
	return []level{
		{"signals_availability", "StorefrontSignalsFailing", 0.999, failed, count(requests, op), "99.9 % of the requests of operation 1 are not answered 5xx.",
			[]string{rising(requests+`_count{operation="recordStorefrontSignals",code="202"}`, 90), rising(requests+`_count{operation="recordStorefrontSignals",code="503"}`, 10)}},
		{"signals_latency", "StorefrontSignalsSlow", 0.99, slow(requests, taken+",", "0.25"), count(requests, taken), "99 % of the batches that are taken are answered within 250 ms.",
			[]string{rising(requests+`_count{operation="recordStorefrontSignals",code="202"}`, 100), rising(requests+`_bucket{operation="recordStorefrontSignals",code="202",le="0.25"}`, 50)}},
		{"signals_stored", "StorefrontSignalsStoredLate", 0.99, slow("storefront_relay_sink_delay_seconds", "", "5|5.0"), count("storefront_relay_sink_delay_seconds", ""), "99 % of the signals are stored within 5 s of their arrival.",
			[]string{rising(`storefront_relay_sink_delay_seconds_count`, 100), rising(`storefront_relay_sink_delay_seconds_bucket{le="5.0"}`, 50)}},
		{"signals_delivered", "StorefrontSignalsDeliveredLate", 0.99, slow("storefront_engine_delivery_delay_seconds", `kind="interaction",`, "5|5.0"), count("storefront_engine_delivery_delay_seconds", `kind="interaction"`),
			"99 % of the interactions are confirmed by the engine within 5 s of being stored.",
			[]string{rising(`storefront_engine_delivery_delay_seconds_count{kind="interaction"}`, 100), rising(`storefront_engine_delivery_delay_seconds_bucket{kind="interaction",le="5.0"}`, 50)}},
	}
}

// levelPrefix begins the names of the groups of service levels.
const levelPrefix = "storefront-slo-"

func (s level) ratio(span string) string { return "storefront:" + s.name + ":error_ratio_rate" + span }

func (s level) group() Group {
	g := Group{Name: levelPrefix + strings.ReplaceAll(s.name, "_", "-")}
	for _, span := range spans() {
		g.Records = append(g.Records, Record{s.ratio(span), fmt.Sprintf(s.bad, span) + " / (" + fmt.Sprintf(s.total, span) + " > 0)"})
	}
	all := Case{After: "3d12h"}
	for _, series := range s.fires {
		all.Series = append(all.Series, strings.Replace(series, "x1440", "x2600", 1))
	}
	for _, w := range windows() {
		all.Labels = append(all.Labels, l{"severity": string(w.severity), "long": w.long, "short": w.short})
	}
	for _, w := range windows() {
		limit := fmt.Sprintf("%g * %g", w.burn, rounded(1-s.objective))
		g.Alerts = append(g.Alerts, Alert{
			Name: s.alert, For: w.wait, Severity: w.severity, Labels: l{"long": w.long, "short": w.short}, Runbook: "slo.md",
			Expr:        fmt.Sprintf("%s > %s and %s > %s", s.ratio(w.long), limit, s.ratio(w.short), limit),
			Summary:     "The error budget of " + strings.ReplaceAll(s.name, "_", " ") + " is being spent",
			Description: fmt.Sprintf("%s Over %s and over %s the budget of 30 days burns more than %g times as fast as it may.", s.promise, w.long, w.short, w.burn),
			Fires:       all,
		})
	}
	return g
}

// rounded takes the noise out of 1-0.999.
func rounded(v float64) float64 { return float64(int(v*1e6+0.5)) / 1e6 }
