package systemtest

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// link is a wire between a service and what stands behind it: it delays what goes either way, and can be cut.
type link struct {
	listener net.Listener
	target   string
	delay    time.Duration
	severed  atomic.Bool
	work     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func newLink(t *testing.T, target string, delay time.Duration) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	k := &link{listener: l, target: target, delay: delay, conns: map[net.Conn]bool{}}
	k.work.Go(k.accept)
	t.Cleanup(func() {
		l.Close()
		k.cut()
		k.work.Wait()
	})
	return k
}

func (k *link) addr() string { return k.listener.Addr().String() }

// cut breaks what is open and refuses what is new, until mend.
func (k *link) cut() {
	k.severed.Store(true)
	k.mu.Lock()
	defer k.mu.Unlock()
	for c := range k.conns {
		c.Close()
	}
}

func (k *link) mend() { k.severed.Store(false) }

func (k *link) accept() {
	for {
		in, err := k.listener.Accept()
		if err != nil {
			return
		}
		k.work.Go(func() { k.serve(in) })
	}
}

func (k *link) serve(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", k.target)
	if err != nil {
		return
	}
	defer out.Close()
	k.note(in, out, true)
	defer k.note(in, out, false)
	if k.severed.Load() {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { k.pass(in, out) })
	both.Go(func() { k.pass(out, in) })
	both.Wait()
}

func (k *link) note(in, out net.Conn, open bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range []net.Conn{in, out} {
		if open {
			k.conns[c] = true
		} else {
			delete(k.conns, c)
		}
	}
}

type parcel struct {
	bytes []byte
	at    time.Time
}

// pass carries bytes one way; each piece arrives the delay after it was sent, and none waits for the one before.
func (k *link) pass(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	if k.delay == 0 {
		_, _ = io.Copy(to, from)
		return
	}
	way := make(chan parcel, 1024)
	var arrival sync.WaitGroup
	arrival.Go(func() {
		for p := range way {
			time.Sleep(time.Until(p.at))
			if _, err := to.Write(p.bytes); err != nil {
				from.Close()
			}
		}
	})
	for {
		b := make([]byte, 16<<10)
		n, err := from.Read(b)
		if n > 0 {
			way <- parcel{b[:n], time.Now().Add(k.delay)}
		}
		if err != nil {
			close(way)
			arrival.Wait()
			return
		}
	}
}
