package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/control/internal/receiver"
	"storefront.internal/control/internal/stats"
	"storefront.internal/shared/servercert"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/telemetry"
)

//go:generate sh -c "go run ../.. reference config > ../../CONFIG.md && go run ../.. reference metrics > ../../METRICS.md"

// ConfigReference is the text of CONFIG.md.
func ConfigReference() string {
	return "# Configuration of control\n\nMade by `control reference config`; a test fails when it is " +
		"stale.\n" +
		"An empty value counts as absent, and a variable that starts with `" + Prefix +
		"_` and is not named here is a fault.\n" +
		"`control migrate` reads `" + Prefix +
		"_DATABASE_URL` alone, which then is of a role that owns the schemas.\n\n" +
		settings.Reference(Prefix, &Config{}) +
		"\n## The public receiver\n\n`control receive` reads these, and none of those above.\n\n" +
		settings.Reference(ReceiverPrefix, &ReceiverConfig{})
}

// MetricsReference is the text of METRICS.md.
func MetricsReference() string {
	return "# Metrics of control\n\nMade by `control reference metrics`; a test fails when it is stale. " +
		"The Go runtime's and the process's own are left out.\n\n" +
		telemetry.MetricsReference(registerMetrics)
}

// registerMetrics registers every metric of the service, and connects to nothing.
func registerMetrics(r prometheus.Registerer) {
	newMetrics(r)
	watchPools(r, nil, nil)
	stats.New(stats.Config{}, r)
	servercert.Register(r, nil)
	receiver.NewMetrics(r)
	new(receiver.Receiver).Watch(r)
}
