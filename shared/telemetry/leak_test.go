package telemetry_test

import (
	"testing"

	"storefront.internal/shared/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
