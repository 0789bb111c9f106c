package redisbatch

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// named returns a dialer for names that are looked up by lookUp, and the port of a server at 127.0.0.1.
func named(t *testing.T, lookUp func(context.Context) ([]string, error)) (d *dialer, address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	d = newDialer(nil)
	d.lookUp = func(ctx context.Context, _ string) ([]string, error) { return lookUp(ctx) }
	return d, net.JoinHostPort("redis.example", port)
}

func dialed(t *testing.T, d *dialer, address string) error {
	t.Helper()
	conn, err := d.dial(t.Context(), "tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// TestRememberedAddresses: a name is looked up once in a while, and its addresses outlive the name server.
func TestRememberedAddresses(t *testing.T) {
	t.Parallel()
	var lookUps atomic.Int32
	var down atomic.Bool
	d, address := named(t, func(ctx context.Context) ([]string, error) {
		lookUps.Add(1)
		if down.Load() {
			<-ctx.Done() // as a name server that does not answer
			return nil, ctx.Err()
		}
		return []string{"127.0.0.1"}, nil
	})
	for range 5 {
		if err := dialed(t, d, address); err != nil {
			t.Fatal(err)
		}
	}
	if n := lookUps.Load(); n != 1 {
		t.Errorf("%d look-ups, want 1", n)
	}
	down.Store(true)
	for host, a := range d.known {
		d.known[host] = answer{a.addresses, a.at.Add(-2 * freshFor)}
	}
	if err := dialed(t, d, address); err != nil {
		t.Errorf("with old addresses: %v", err)
	}
	if n := lookUps.Load(); n != 2 {
		t.Errorf("%d look-ups, want 2", n)
	}
}

// TestMovedServer: addresses that accept no connection are looked up again at once.
func TestMovedServer(t *testing.T) {
	t.Parallel()
	d, address := named(t, func(context.Context) ([]string, error) { return []string{"127.0.0.1"}, nil })
	d.known["redis.example"] = answer{[]string{"127.0.0.2"}, time.Now()} // nobody listens there
	if err := dialed(t, d, address); err != nil {
		t.Fatal(err)
	}
	if a, _ := d.remembered("redis.example"); !slices.Equal(a, []string{"127.0.0.1"}) {
		t.Errorf("remembered %v", a)
	}
}

// TestUnknownName: without an address ever known, the error of the look-up tells why.
func TestUnknownName(t *testing.T) {
	t.Parallel()
	want := errors.New("no such host")
	d, address := named(t, func(context.Context) ([]string, error) { return nil, want })
	if err := dialed(t, d, address); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
}
