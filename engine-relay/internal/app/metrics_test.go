package app

import (
	"testing"

	"storefront.internal/shared/telemetry"
)

func TestMetricsKeepTheConventions(t *testing.T) {
	t.Parallel()
	for _, fault := range telemetry.ConventionFaults(registerMetrics) {
		t.Error(fault)
	}
}
