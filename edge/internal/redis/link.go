package redis

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// link is one connection to a single server that carries flights, one after the other. After an error it is closed: what
// still arrives on it could be taken for answers to somebody else.
type link struct {
	conn    net.Conn
	in      *bufio.Reader
	out     []byte
	flights uint64
	worn    bool // the server said that it is not the one to ask: close it after the flight
}

// exchange sends the commands of the batches and reads their answers. Behind them goes an ECHO of the flight's number:
// when it does not come back as the last answer, the stream has lost its place, and nobody gets an answer.
func (l *link) exchange(deadline time.Time, batches []*batch) error {
	if err := l.conn.SetDeadline(deadline); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	l.flights++
	var room [20]byte
	mark := strconv.AppendUint(room[:0], l.flights, 10)
	l.out = l.out[:0]
	for _, b := range batches {
		b.forget()
		l.out = append(l.out, b.wire...)
	}
	l.out = appendWord(appendWord(appendHead(l.out, 2), "echo"), mark)
	if _, err := l.conn.Write(l.out); err != nil {
		return fmt.Errorf("redis: write: %w", err)
	}
	for _, b := range batches {
		if err := b.read(l.in); err != nil {
			return err
		}
		l.worn = l.worn || b.err != nil && misdirected(b)
	}
	return l.atEnd(mark)
}

// atEnd checks that the flight's mark is the last answer that has come.
func (l *link) atEnd(mark []byte) error {
	var room [64]byte
	r, text, err := readReply(l.in, room[:0])
	switch {
	case err != nil:
		return err
	case r.kind != textReply || !bytes.Equal(text, mark) || l.in.Buffered() > 0:
		return errGarbled
	}
	return nil
}

// misdirected reports whether an answer says that another server should be asked, or this one later: a name may lead to
// the right one by now.
func misdirected(b *batch) bool {
	for i := range b.replies {
		if b.replies[i].kind != errorReply {
			continue
		}
		for _, word := range []string{"READONLY", "LOADING", "MASTERDOWN", "NOAUTH"} {
			if bytes.HasPrefix(b.text(i), []byte(word)) {
				return true
			}
		}
	}
	return false
}

// links carries flights to a single server over connections of its own, dialled as the client dials.
type links struct {
	opts *goredis.Options

	mu     sync.Mutex
	idle   []*link
	closed bool
}

// carry implements carrier. A connection that carried a flight before may have been closed by the server meanwhile, so
// then it is tried once more on a new one: everything that is sent here may be sent twice.
func (s *links) carry(deadline time.Time, batches []*batch) error {
	l := s.take()
	if l != nil {
		err := l.exchange(deadline, batches)
		if err == nil {
			s.give(l)
			return nil
		}
		_ = l.conn.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errGarbled) {
			return err
		}
	}
	l, err := s.dial(deadline)
	if err != nil {
		return err
	}
	if err := l.exchange(deadline, batches); err != nil {
		_ = l.conn.Close()
		return err
	}
	s.give(l)
	return nil
}

func (s *links) take() *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.idle)
	if n == 0 {
		return nil
	}
	l := s.idle[n-1]
	s.idle = s.idle[:n-1]
	return l
}

func (s *links) give(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.worn || s.closed {
		_ = l.conn.Close()
		return
	}
	if cap(l.out) > 4*keptRoom {
		l.out = nil
	}
	s.idle = append(s.idle, l)
}

func (s *links) dial(deadline time.Time) (*link, error) {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	conn, err := s.opts.Dialer(ctx, s.opts.Network, s.opts.Addr)
	if err != nil {
		return nil, fmt.Errorf("redis: dial: %w", err)
	}
	l := &link{conn: conn, in: bufio.NewReaderSize(conn, 16<<10)}
	if s.opts.Password == "" {
		return l, nil
	}
	var hello batch
	if s.opts.Username == "" {
		hello.add("auth", s.opts.Password)
	} else {
		hello.add("auth", s.opts.Username, s.opts.Password)
	}
	if err = l.exchange(deadline, []*batch{&hello}); err == nil {
		err = hello.err
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return l, nil
}

func (s *links) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, l := range s.idle {
		_ = l.conn.Close()
	}
	s.idle = nil
}
