package app

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/settings"
	"storefront.internal/shared/telemetry"
)

//go:generate sh -c "go run ../.. reference config > ../../CONFIG.md.new && mv ../../CONFIG.md.new ../../CONFIG.md && go run ../.. reference metrics > ../../METRICS.md.new && mv ../../METRICS.md.new ../../METRICS.md"

// ConfigReference is the text of CONFIG.md.
func ConfigReference() string {
	c := newConfig()
	return "# Configuration of edge\n\nMade by `edge reference config`; a test fails when it is stale.\n" +
		"An empty value counts as absent. A variable that starts with `" + Prefix +
		"_` and is not named here is an error.\n\n" +
		settings.Reference(Prefix, &c)
}

// MetricsReference is the text of METRICS.md.
func MetricsReference() string {
	return "# Metrics of edge\n\nMade by `edge reference metrics`; a test fails when it is stale. " +
		"The Go runtime's and the process's own are left out.\n\n" +
		telemetry.MetricsReference(registerMetrics)
}

// registerMetrics registers every metric of the service, and connects to nothing.
func registerMetrics(r prometheus.Registerer) {
	wire(newConfig(), nil, backends{}, r, slog.New(slog.DiscardHandler))
}
