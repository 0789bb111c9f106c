package systemtest

import (
	"context"
	"errors"
	"os"
	"testing"

	"storefront.internal/deploy/stack"
)

// newDeploymentWithStores makes a deployment with a PostgreSQL, a Redis and a Kafka of its own, which the
// test may kill and start again on the same addresses.
func newDeploymentWithStores(t *testing.T) *deployment {
	t.Helper()
	dir, err := os.MkdirTemp("", "storefront-stores-") // PostgreSQL's user cannot enter the test's own folder
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	check(t, os.Chmod(dir, 0o755))
	x := emptyDeployment(t, "st_"+randomHex(6), shared.settings(""))
	err = x.StartStores(context.Background(), stack.Stores{Project: shared.project, Dir: dir})
	if errors.Is(err, stack.ErrUnavailable) {
		unavailable(t, err)
	}
	check(t, err)
	check(t, x.Settings.Prepare(context.Background()))
	x.open()
	x.startControl()
	return x
}
