package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/netutil"

	"storefront.internal/shared/servercert"
	"storefront.internal/shared/settings"
)

// listener is the HTTP server as a part of the process.
type listener struct {
	address     string
	certificate *servercert.Certificate // nil: no TLS
	server      *http.Server
	limit       int          // of open connections; 0: none
	addr        atomic.Value // the bound address, a string
}

func newListener(address string, certificate *servercert.Certificate, server *http.Server) *listener {
	return &listener{address: address, certificate: certificate, server: server}
}

func (l *listener) start(ctx context.Context, failed func(error)) error {
	socket, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.address)
	if err != nil {
		return fmt.Errorf("listener: %w", err)
	}
	l.addr.Store(socket.Addr().String())
	if l.limit > 0 {
		socket = netutil.LimitListener(socket, l.limit)
	}
	go func() {
		if err := l.server.Serve(l.certificate.Listener(socket)); !errors.Is(err, http.ErrServerClosed) {
			failed(fmt.Errorf("listener: %w", err))
		}
	}()
	return nil
}

// stop waits for running requests until ctx ends.
func (l *listener) stop(ctx context.Context) error {
	if err := l.server.Shutdown(ctx); err != nil {
		return errors.Join(err, l.server.Close())
	}
	return nil
}

func (l *listener) bound() string {
	addr, _ := l.addr.Load().(string)
	return addr
}

// loadCertificate returns nil when the listener has no TLS.
func loadCertificate(prefix string, files settings.ServerTLS, r prometheus.Registerer,
	logger *slog.Logger) (*servercert.Certificate, error) {
	cert, err := servercert.Load(servercert.Config{Files: files, Logger: logger, Now: time.Now})
	if err != nil {
		return nil, fmt.Errorf("%s_%w", prefix, err)
	}
	servercert.Register(r, cert)
	return cert, nil
}
