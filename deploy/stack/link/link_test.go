package link

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// echo answers every line with itself and counts what arrived.
func echo(t *testing.T) (addr string, arrived chan string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	arrived = make(chan string, 100)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewScanner(c)
				for in.Scan() {
					arrived <- in.Text()
					if _, err := fmt.Fprintln(c, in.Text()); err != nil {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String(), arrived
}

func open(t *testing.T) (*Link, chan string) {
	t.Helper()
	upstream, arrived := echo(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	s := NewSet()
	l, err := s.Open("test", free.Addr().String(), upstream)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return l, arrived
}

type caller struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, l *Link) *caller {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &caller{t, c, bufio.NewReader(c)}
}

func (c *caller) say(text string) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c, text); err != nil {
		c.t.Fatal(err)
	}
}

func (c *caller) hear(within time.Duration) (string, error) {
	_ = c.SetReadDeadline(time.Now().Add(within))
	text, err := c.in.ReadString('\n')
	return strings.TrimSpace(text), err
}

func (c *caller) hears(want string) {
	c.t.Helper()
	if got, err := c.hear(30 * time.Second); got != want || err != nil {
		c.t.Fatalf("heard %q, %v; want %q", got, err, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What was sent into a stalled link arrives over the same connection after Heal.
func TestStallHeals(t *testing.T) {
	l, arrived := open(t)
	c := dial(t, l)
	c.say("one")
	c.hears("one")
	<-arrived
	must(t, l.Stall())
	c.say("two")
	if got, err := c.hear(200 * time.Millisecond); err == nil {
		t.Fatalf("heard %q through a stalled link", got)
	}
	if len(arrived) != 0 {
		t.Fatalf("%q arrived through a stalled link", <-arrived)
	}
	must(t, l.Heal())
	c.hears("two")
}

// A deaf link forwards the request and loses the response.
func TestDeafen(t *testing.T) {
	l, arrived := open(t)
	must(t, l.Deafen(0))
	c := dial(t, l)
	c.say("one")
	if got := <-arrived; got != "one" {
		t.Fatal(got)
	}
	if got, err := c.hear(30 * time.Second); err == nil {
		t.Fatalf("heard %q", got)
	}
	must(t, l.Heal())
	again := dial(t, l)
	again.say("two")
	again.hears("two")
}

func TestResetAndCut(t *testing.T) {
	l, _ := open(t)
	c := dial(t, l)
	c.say("one")
	c.hears("one")
	must(t, l.Reset())
	c.say("two")
	if got, err := c.hear(30 * time.Second); err == nil {
		t.Fatalf("heard %q through a reset link", got)
	}
	must(t, l.Heal())
	d := dial(t, l)
	d.say("three")
	d.hears("three")
	l.Cut()
	if _, err := d.hear(30 * time.Second); !errors.Is(err, io.EOF) && !isReset(err) {
		t.Fatalf("a cut connection: %v", err)
	}
	if c, err := net.Dial("tcp", l.Addr()); err == nil {
		c.Close()
		t.Fatal("a cut link accepts")
	}
	must(t, l.Heal())
	e := dial(t, l)
	e.say("four")
	e.hears("four")
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && !op.Timeout()
}

// Slow, narrow and sliced links deliver everything in the end.
func TestSlow(t *testing.T) {
	l, _ := open(t)
	must(t, l.Slow(20*time.Millisecond, 10*time.Millisecond))
	must(t, l.Slice(4, 10*time.Microsecond))
	must(t, l.Narrow(1000))
	c := dial(t, l)
	text := strings.Repeat("x", 1000)
	c.say(text)
	c.hears(text)
	must(t, l.Heal())
	c.say("after")
	c.hears("after")
}

// A server that reads nothing does not keep a link from healing.
func TestHealsAlthoughTheFarEndStands(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	free.Close()
	s := NewSet()
	l, err := s.Open("deaf", free.Addr().String(), listener.Addr().String())
	must(t, err)
	t.Cleanup(s.Close)
	c := dial(t, l)
	far, err := listener.Accept()
	must(t, err)
	t.Cleanup(func() { far.Close() })
	_ = c.SetWriteDeadline(time.Now().Add(2 * time.Second))
	_, _ = c.Write(make([]byte, 16<<20)) // fills every buffer on the way
	_ = l.Stall()
	must(t, l.Heal())
	dial(t, l)
}
