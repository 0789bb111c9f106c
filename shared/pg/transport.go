package pg

import (
	"crypto/tls"
	"log/slog"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"storefront.internal/shared/settings"
)

// WarnOfTransport logs a warning when the URL allows a connection to another machine that is not encrypted,
// or whose server is not verified: any sslmode below verify-full. It does not refuse it, since a network may
// encrypt by itself.
func WarnOfTransport(s settings.Postgres, logger *slog.Logger) {
	cfg, err := pgconn.ParseConfig(s.DatabaseURL.Reveal())
	if err != nil || verified(cfg) {
		return
	}
	logger.Warn("the connection to PostgreSQL can be read or taken over: use sslmode=verify-full in the " +
		"database URL unless the network encrypts and authenticates by itself")
}

// verified reports whether every connection that a URL allows is local, or to a server that is verified by
// name.
func verified(cfg *pgconn.Config) bool {
	safe := func(host string, c *tls.Config) bool {
		return local(host) || c != nil && !c.InsecureSkipVerify
	}
	if !safe(cfg.Host, cfg.TLSConfig) {
		return false
	}
	for _, f := range cfg.Fallbacks {
		if !safe(f.Host, f.TLSConfig) {
			return false
		}
	}
	return true
}

// local reports whether a host is this machine: a socket in the file system or a loopback address.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasPrefix(host, "/") || ip != nil && ip.IsLoopback()
}
