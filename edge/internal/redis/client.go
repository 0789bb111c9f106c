package redis

import (
	"crypto/tls"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"storefront.internal/shared/settings"
)

// Budget is how long one round trip may take before Redis counts as out of reach, a retry included.
const Budget = 250 * time.Millisecond

// NewClient returns a client of a server, or of a cluster when there are several addresses. It connects on first use.
func NewClient(s settings.Redis) goredis.UniversalClient { return newClient(s, Budget) }

func newClient(s settings.Redis, budget time.Duration) goredis.UniversalClient {
	opts := &goredis.UniversalOptions{
		Addrs:                 s.RedisAddrs,
		Username:              s.RedisUsername,
		Password:              s.RedisPassword.Reveal(),
		Protocol:              2,
		MaxRetries:            1, // a connection that the server closed meanwhile
		MinRetryBackoff:       time.Millisecond,
		MaxRetryBackoff:       10 * time.Millisecond,
		DialTimeout:           budget,
		DialerRetries:         1,
		ReadTimeout:           budget,
		WriteTimeout:          budget,
		PoolTimeout:           budget,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled,
		},
	}
	if s.RedisTLS {
		opts.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return goredis.NewUniversalClient(opts)
}
