package systemtest

import (
	"context"
	"testing"
	"time"

	"storefront.internal/deploy/local/services"
)

// skipBacklog lets a new consumer group begin behind what other scenarios left in the shared topics.
func skipBacklog(t *testing.T, brokers, group string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := services.SkipBacklog(ctx, brokers, group); err != nil {
		t.Fatal(err)
	}
}
