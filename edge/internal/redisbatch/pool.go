package redisbatch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// connPool is the transport to a single server. It dials as the client with these options does.
type connPool struct {
	opts *goredis.Options

	mu        sync.Mutex
	idle      []*conn
	abandoned []*dial // nobody waits for them
	closed    bool
}

// dial is a conn that is being made. It may take longer than the round trip that asks for it.
type dial struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when conn or err is set
	conn   *conn
	err    error
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
	c, err := p.connect(deadline)
	if err != nil {
		return err
	}
	return p.roundTrip(c, deadline, batches)
}

// warm implements transport: it makes conns until that many are idle.
func (p *connPool) warm(ctx context.Context, conns int) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(dialTimeout)
	}
	var made []*conn
	defer func() {
		for _, c := range made {
			p.put(c, true)
		}
	}()
	for range conns {
		c, err := p.connect(deadline)
		if err != nil {
			return err
		}
		made = append(made, c)
	}
	return nil
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

// connect returns a new conn. When there is none by the deadline the dial is abandoned: it goes on, and the
// next round trip takes its conn. So there are never more dials than slots.
func (p *connPool) connect(deadline time.Time) (*conn, error) {
	d := p.startDial()
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-d.done:
		return d.conn, d.err
	case <-timer.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-d.done:
		return d.conn, d.err
	default:
		p.abandoned = append(p.abandoned, d)
		return nil, fmt.Errorf("redis: still connecting: %w", os.ErrDeadlineExceeded)
	}
}

// startDial returns an abandoned dial, or a new one.
func (p *connPool) startDial() *dial {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.abandoned); n > 0 {
		d := p.abandoned[n-1]
		p.abandoned = p.abandoned[:n-1]
		return d
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	d := &dial{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer cancel()
		d.conn, d.err = p.dial(ctx)
		p.finish(d)
	}()
	return d
}

// finish wakes the round trip that waits for the dial, or keeps the conn of an abandoned one.
func (p *connPool) finish(d *dial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(d.done)
	i := slices.Index(p.abandoned, d)
	if i < 0 {
		return
	}
	p.abandoned = slices.Delete(p.abandoned, i, i+1)
	switch {
	case d.err != nil:
	case p.closed:
		_ = d.conn.Close()
	default:
		p.idle = append(p.idle, d.conn)
	}
}

func (p *connPool) dial(ctx context.Context) (*conn, error) {
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
	deadline, _ := ctx.Deadline()
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
	for _, d := range p.abandoned {
		d.cancel()
	}
}
