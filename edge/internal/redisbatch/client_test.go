package redisbatch

import (
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"storefront.internal/shared/settings"
)

// TestClientOfACluster: a managed cluster has one endpoint for all of its servers. Spoken to as a server, it
// answers MOVED.
func TestClientOfACluster(t *testing.T) {
	t.Parallel()
	f := func(addrs []string, cluster, want bool) {
		t.Helper()
		client := NewClient(settings.Redis{RedisAddrs: addrs, RedisCluster: cluster}, Timeout)
		defer func() { _ = client.Close() }()
		if _, clustered := client.(*goredis.ClusterClient); clustered != want {
			t.Errorf("%v, cluster %v: %T", addrs, cluster, client)
		}
	}
	f([]string{"127.0.0.1:1"}, false, false)
	f([]string{"127.0.0.1:1"}, true, true)
	f([]string{"127.0.0.1:1", "127.0.0.1:2"}, false, true)
}
