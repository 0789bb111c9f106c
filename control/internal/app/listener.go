package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"storefront.internal/shared/servercert"
)

// listener is the HTTP server as a part of the process.
type listener struct {
	address     string
	certificate *servercert.Certificate // nil: no TLS
	server      *http.Server
	addr        atomic.Value // the bound address, a string
}

func newListener(address string, certificate *servercert.Certificate, server *http.Server) *listener {
	return &listener{address: address, certificate: certificate, server: server}
}

func (l *listener) start(ctx context.Context, failed func(error)) error {
	socket, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.address)
	if err != nil {
		return fmt.Errorf("internal surface: %w", err)
	}
	l.addr.Store(socket.Addr().String())
	go func() {
		if err := l.server.Serve(l.certificate.Listener(socket)); !errors.Is(err, http.ErrServerClosed) {
			failed(fmt.Errorf("internal surface: %w", err))
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
