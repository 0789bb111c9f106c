package redisbatch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// conn is a connection to a single server, for one round trip at a time. After an error it is closed, as what
// still arrives on it could be taken for the replies to other commands.
type conn struct {
	net.Conn
	in         *bufio.Reader
	out        []byte
	roundTrips uint64
	broken     bool // the server is a replica, is loading, or wants a password: close after this round trip
}

// roundTrip sends the commands of the batches and reads their replies. Behind them it sends an ECHO of the
// number of the round trip, the sync token: when that does not come back as the last reply, the replies are
// not those to the commands.
func (c *conn) roundTrip(deadline time.Time, batches []*Batch) error {
	if err := c.SetDeadline(deadline); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	c.roundTrips++
	token := strconv.FormatUint(c.roundTrips, 10)
	c.out = c.out[:0]
	for _, b := range batches {
		b.resetReplies()
		c.out = append(c.out, b.wire...)
	}
	c.out = AppendWords(appendHeader(c.out, 2), "echo", token)
	if _, err := c.Write(c.out); err != nil {
		return fmt.Errorf("redis: write: %w", err)
	}
	for _, b := range batches {
		if err := b.read(c.in); err != nil {
			return err
		}
		c.broken = c.broken || b.err != nil && hasRoleError(b)
	}
	return c.checkToken(token)
}

// checkToken checks that the last reply is the sync token.
func (c *conn) checkToken(token string) error {
	var buf [64]byte
	r, text, err := readReply(c.in, buf[:0])
	switch {
	case err != nil:
		return err
	case r.kind == errorReply:
		return fmt.Errorf("redis: the server does not execute ECHO: %s", text)
	case r.kind != textReply || string(text) != token || c.in.Buffered() > 0:
		return errProtocol
	}
	return nil
}

// hasRoleError reports whether a reply says that another server should be asked, or this one later. Then a
// new conn may lead to the right one.
func hasRoleError(b *Batch) bool {
	for i := range b.replies {
		code, _, _ := bytes.Cut(b.Text(i), []byte(" "))
		if b.replies[i].kind == errorReply &&
			slices.Contains([]string{"READONLY", "LOADING", "MASTERDOWN", "NOAUTH"}, string(code)) {
			return true
		}
	}
	return false
}

// connPool is the transport to a single server. It dials as the client with these options does.
type connPool struct {
	opts *goredis.Options

	mu     sync.Mutex
	idle   []*conn
	closed bool
}

// execute implements transport. The server may have closed an idle conn; then the round trip is tried once
// more on a new conn, since every command can be sent twice.
func (p *connPool) execute(deadline time.Time, batches []*Batch) error {
	if c := p.get(); c != nil {
		err := p.roundTrip(c, deadline, batches)
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errProtocol) {
			return err
		}
	}
	c, err := p.dial(deadline)
	if err != nil {
		return err
	}
	return p.roundTrip(c, deadline, batches)
}

// roundTrip makes a round trip, and puts the conn back or closes it.
func (p *connPool) roundTrip(c *conn, deadline time.Time, batches []*Batch) error {
	err := c.roundTrip(deadline, batches)
	p.put(c, err == nil)
	return err
}

func (p *connPool) get() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	c := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return c
}

func (p *connPool) put(c *conn, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !ok || c.broken || p.closed {
		_ = c.Close()
		return
	}
	if cap(c.out) > 4*maxIdleBuffer {
		c.out = nil
	}
	p.idle = append(p.idle, c)
}

func (p *connPool) dial(deadline time.Time) (*conn, error) {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	dialled, err := p.opts.Dialer(ctx, p.opts.Network, p.opts.Addr)
	if err != nil {
		return nil, fmt.Errorf("redis: dial: %w", err)
	}
	c := &conn{Conn: dialled, in: bufio.NewReaderSize(dialled, 16<<10)}
	if p.opts.Password == "" {
		return c, nil
	}
	auth := Batch{}
	if p.opts.Username == "" {
		auth.Add("auth", p.opts.Password)
	} else {
		auth.Add("auth", p.opts.Username, p.opts.Password)
	}
	if err = c.roundTrip(deadline, []*Batch{&auth}); err == nil {
		err = auth.err
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func (p *connPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		_ = c.Close()
	}
	p.idle = nil
}
