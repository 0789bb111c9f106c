package testkit

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis returns the address of the server and a key prefix for the test. The keys with the prefix are deleted
// when the test ends.
func Redis(t testing.TB) (addr, prefix string) {
	t.Helper()
	addr, prefix = address(t, "TEST_REDIS_ADDR"), Name("t")+":"
	client := redis.NewClient(&redis.Options{Addr: addr})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		t.Fatalf("testkit: Redis at %s: %v", addr, err)
	}
	t.Cleanup(func() {
		defer func() { _ = client.Close() }()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		it := client.Scan(ctx, 0, prefix+"*", 1000).Iterator()
		for it.Next(ctx) {
			client.Unlink(ctx, it.Val()) // fails when a test stopped the server; the keys expire then
		}
	})
	return addr, prefix
}
