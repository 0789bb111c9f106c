package app

import (
	"testing"

	"storefront.internal/shared/testkit"
)

func TestMetricsKeepTheConventions(t *testing.T) {
	t.Parallel()
	testkit.CheckMetrics(t, registerMetrics)
}
