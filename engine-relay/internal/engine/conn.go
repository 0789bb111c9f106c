package engine

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
)

// countedConn counts the bytes that were given to the connection, including those of failed writes.
type countedConn struct {
	net.Conn
	written atomic.Int64
}

// Write counts first, since a failed write may have sent a part.
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

// counted finds the counter of a connection, also under TLS.
func counted(c net.Conn) (*countedConn, bool) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	counter, ok := c.(*countedConn)
	return counter, ok
}
