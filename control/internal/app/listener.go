package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"storefront.internal/shared/servercert"
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
		socket = &limitedListener{Listener: socket, open: make(chan struct{}, l.limit),
			closed: make(chan struct{})}
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

// limitedListener accepts a connection when there is room for it.
type limitedListener struct {
	net.Listener
	open   chan struct{}
	closed chan struct{}
	once   sync.Once
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.open <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.open
		return nil, err
	}
	return &limitedConn{Conn: c, done: sync.OnceFunc(func() { <-l.open })}, nil
}

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	done func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	defer c.done()
	return c.Conn.Close()
}
