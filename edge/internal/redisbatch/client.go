package redisbatch

import (
	"crypto/tls"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"storefront.internal/shared/settings"
)

// Timeout is the usual timeout of a round trip to Redis, a retry included.
const Timeout = 250 * time.Millisecond

// NewClient returns a client of a server, or of a cluster when there are several addresses. It connects on
// first use.
func NewClient(s settings.Redis, timeout time.Duration) goredis.UniversalClient {
	opts := &goredis.UniversalOptions{
		Addrs:                 s.RedisAddrs,
		Username:              s.RedisUsername,
		Password:              s.RedisPassword.Reveal(),
		Protocol:              2,
		MaxRetries:            1, // the server may have closed an idle conn
		MinRetryBackoff:       time.Millisecond,
		MaxRetryBackoff:       10 * time.Millisecond,
		DialTimeout:           timeout,
		DialerRetries:         1,
		ReadTimeout:           timeout,
		WriteTimeout:          timeout,
		PoolTimeout:           timeout,
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
