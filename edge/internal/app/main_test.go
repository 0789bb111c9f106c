package app

import (
	"testing"

	"go.uber.org/goleak"

	"storefront.internal/shared/testkit"
)

// TestMain ignores goroutines of fasthttp: one for each process, and one for each server that ends ten
// seconds late.
func TestMain(m *testing.M) {
	testkit.Main(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}
