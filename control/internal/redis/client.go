package redis

import (
	"crypto/tls"
	"time"

	"github.com/redis/go-redis/v9"

	"storefront.internal/shared/settings"
)

// Open returns a client of one server or of a cluster. It does not connect: control starts and serves while
// Redis is down.
func Open(s settings.Redis) redis.UniversalClient {
	options := &redis.UniversalOptions{
		Addrs:                 s.RedisAddrs,
		IsClusterMode:         s.Clustered(),
		Username:              s.RedisUsername,
		Password:              s.RedisPassword.Reveal(),
		ClientName:            "storefront-control",
		ContextTimeoutEnabled: true,
		DialTimeout:           time.Second,
		ReadTimeout:           time.Second,
		WriteTimeout:          time.Second,
		MaxRetries:            1,
		PoolSize:              8,
	}
	if s.RedisTLS {
		options.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return redis.NewUniversalClient(options)
}
