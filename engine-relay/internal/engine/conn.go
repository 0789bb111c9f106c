package engine

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
)

// countedConn counts the bytes that were given to the connection, those of failed writes included.
type countedConn struct {
	net.Conn
	written atomic.Int64
}

// Write counts before it writes: what may have left counts.
func (c *countedConn) Write(b []byte) (int, error) {
	c.written.Add(int64(len(b)))
	return c.Conn.Write(b)
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func dialCounted(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &countedConn{Conn: c}, nil
	}
}

// counted finds the counter of a connection, under TLS too.
func counted(c net.Conn) (*countedConn, bool) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	counter, ok := c.(*countedConn)
	return counter, ok
}
