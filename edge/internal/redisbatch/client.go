package redisbatch

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"storefront.internal/shared/settings"
)

// Timeout is the usual timeout of a round trip to Redis, a retry included.
const Timeout = 250 * time.Millisecond

// NewClient returns a client of a server or of a cluster. It connects on first use. The timeout is that of a
// command; a dial that takes longer serves the next one.
func NewClient(s settings.Redis, timeout time.Duration) goredis.UniversalClient {
	var security *tls.Config
	if s.RedisTLS {
		security = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	opts := &goredis.UniversalOptions{
		Addrs:                 s.RedisAddrs,
		IsClusterMode:         s.Clustered(),
		Username:              s.RedisUsername,
		Password:              s.RedisPassword.Reveal(),
		Protocol:              2,
		MaxRetries:            1, // the server may have closed an idle conn
		MinRetryBackoff:       time.Millisecond,
		MaxRetryBackoff:       10 * time.Millisecond,
		Dialer:                newDialer(security).dial,
		DialTimeout:           dialTimeout,
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
	client := goredis.NewUniversalClient(opts)
	client.AddHook(commandTimeout(timeout))
	return client
}

// commandTimeout is a hook by which a command ends in time although it waits for a dial.
type commandTimeout time.Duration

// DialHook implements goredis.Hook.
func (commandTimeout) DialHook(next goredis.DialHook) goredis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return next(ctx, network, address)
	}
}

// ProcessHook implements goredis.Hook.
func (d commandTimeout) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(d))
		defer cancel()
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements goredis.Hook.
func (d commandTimeout) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(d))
		defer cancel()
		return next(ctx, cmds)
	}
}
