package redisbatch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	// dialTimeout bounds a dial, with the look-up of the name and the handshake. A dial that takes longer
	// than the command that asked for it goes on, for the next command.
	dialTimeout = 2 * time.Second
	// lookupTimeout bounds the look-up of a name whose addresses are remembered.
	lookupTimeout = 500 * time.Millisecond
	// freshFor is how long the addresses of a name are used without a look-up.
	freshFor = 10 * time.Second
)

// dialer dials servers and remembers the addresses of their names, so that a name server that is slow, as
// after a stall when everything connects again, does not keep Redis out of reach.
type dialer struct {
	lookUp func(ctx context.Context, host string) ([]string, error)
	tls    *tls.Config // nil: none

	mu    sync.Mutex
	known map[string]answer // by host
}

type answer struct {
	addresses []string
	at        time.Time
}

func newDialer(config *tls.Config) *dialer {
	return &dialer{lookUp: net.DefaultResolver.LookupHost, tls: config, known: map[string]answer{}}
}

// dial connects to an address host:port.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	conn, err := d.connect(ctx, network, host, port)
	if err != nil || d.tls == nil {
		return conn, err
	}
	config := d.tls.Clone()
	config.ServerName = host
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("TLS with %s: %w", host, err), conn.Close())
	}
	return secured, nil
}

// connect tries the remembered addresses first when they are fresh, and asks for others when those fail: the
// server may have moved.
func (d *dialer) connect(ctx context.Context, network, host, port string) (net.Conn, error) {
	if net.ParseIP(host) != nil {
		return dialAny(ctx, network, []string{host}, port)
	}
	addresses, fresh := d.remembered(host)
	if fresh {
		if conn, err := dialAny(ctx, network, addresses, port); err == nil {
			return conn, nil
		}
	}
	addresses, err := d.ask(ctx, host, addresses)
	if err != nil {
		return nil, err
	}
	return dialAny(ctx, network, addresses, port)
}

func (d *dialer) remembered(host string) (addresses []string, fresh bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.known[host]
	return a.addresses, len(a.addresses) > 0 && time.Since(a.at) < freshFor
}

// ask looks the name up. The old addresses stand in for an answer that fails.
func (d *dialer) ask(ctx context.Context, host string, old []string) ([]string, error) {
	if len(old) > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
	}
	addresses, err := d.lookUp(ctx, host)
	if err != nil || len(addresses) == 0 {
		if len(old) > 0 {
			return old, nil
		}
		return nil, fmt.Errorf("look up %s: %w", host, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known[host] = answer{addresses, time.Now()}
	return addresses, nil
}

// dialAny returns a connection to the first address that accepts one.
func dialAny(ctx context.Context, network string, addresses []string, port string) (net.Conn, error) {
	var failures []error
	for i, address := range addresses {
		conn, err := dialOne(ctx, network, net.JoinHostPort(address, port), len(addresses)-i)
		if err == nil {
			return conn, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

// dialOne leaves time for the addresses after this one.
func dialOne(ctx context.Context, network, address string, left int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}
