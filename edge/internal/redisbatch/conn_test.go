package redisbatch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"

	"storefront.internal/shared/settings"
)

// script is what a fakeServer does on one conn: it replies that many round trips, then sends something else
// in place of the replies, or hangs up. In then, {token} stands for the sync token.
type script struct {
	answered int
	then     string
	hangUp   bool
}

// fakeServer is a server that replies to `get k` with k. Each conn follows the next script; later conns are
// answered without end.
type fakeServer struct {
	listener net.Listener
	work     sync.WaitGroup

	mu    sync.Mutex
	conns int
}

func startServer(t *testing.T, scripts ...script) *fakeServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &fakeServer{listener: l}
	s.work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			plan := script{answered: 1 << 30}
			if s.conns < len(scripts) {
				plan = scripts[s.conns]
			}
			s.conns++
			s.mu.Unlock()
			s.work.Go(func() { serve(conn, plan) })
		}
	})
	return s
}

// batcher returns a Batcher for the server, with one slot.
func (s *fakeServer) batcher(t *testing.T, timeout time.Duration, wrap func(transport) transport) *Batcher {
	client := NewClient(settings.Redis{RedisAddrs: []string{s.listener.Addr().String()}}, timeout)
	b := newBatcher(wrap(&connPool{opts: client.(*goredis.Client).Options()}), 1, timeout)
	t.Cleanup(func() {
		b.Close()
		_ = client.Close()
		_ = s.listener.Close()
		s.work.Wait()
	})
	return b
}

func direct(t transport) transport { return t }

func (s *fakeServer) seen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

// serve replies round trip by round trip; each ends with an ECHO.
func serve(conn net.Conn, plan script) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for trip := 0; !plan.hangUp || trip < plan.answered; trip++ {
		var replies strings.Builder
		for {
			words, err := readCommand(in)
			if err != nil {
				return
			}
			last := words[len(words)-1]
			if words[0] == "echo" && trip >= plan.answered {
				_, _ = io.WriteString(conn, strings.ReplaceAll(plan.then, "{token}", bulk(last)))
				_, _ = io.Copy(io.Discard, conn) // until the client hangs up
				return
			}
			replies.WriteString(bulk(last))
			if words[0] == "echo" {
				break
			}
		}
		if _, err := io.WriteString(conn, replies.String()); err != nil {
			return
		}
	}
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func readCommand(in *bufio.Reader) (words []string, err error) {
	var n int
	if _, err := fmt.Fscanf(in, "*%d\r\n", &n); err != nil {
		return nil, err
	}
	for range n {
		var length int
		if _, err := fmt.Fscanf(in, "$%d\r\n", &length); err != nil {
			return nil, err
		}
		word := make([]byte, length+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, err
		}
		words = append(words, string(word[:length]))
	}
	return words, nil
}

// TestWrongReplies: replies that are short, malformed, too many or those to other commands are not used. Each
// batch of the round trip gets an error, the conn is closed, and the next round trip succeeds.
func TestWrongReplies(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]string{
		"not a reply":                     "what\r\n",
		"a length that is not a number":   "$x\r\n",
		"a length out of bounds":          "$99999999999\r\n",
		"a text longer than its length":   "$1\r\nab\r\n" + bulk("b") + "{token}",
		"a line without its end":          "$1\na\r\n" + bulk("b") + "{token}",
		"an array":                        "*1\r\n" + bulk("a") + bulk("b") + "{token}",
		"a reply too many":                bulk("stale") + bulk("a") + bulk("b") + "{token}",
		"a reply after the token":         bulk("a") + bulk("b") + "{token}" + bulk("more"),
		"a reply too few":                 bulk("b") + "{token}+PONG\r\n",
		"the token of another round trip": bulk("a") + bulk("b") + bulk("4711"),
		"a number of many digits":         ":99999999999999999999\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, script{answered: 2, then: then})
			var g *gate
			b := s.batcher(t, testTimeout, func(t transport) transport { g = newGate(t); return g })
			close(g.open)
			expectEcho(t, b)
			g.open = make(chan struct{})
			errs := make(chan error, 2)
			before := make(chan struct{})
			go func() { expectEcho(t, b); close(before) }()
			<-g.entered
			<-g.entered // the round trip that keeps the slot
			for i, key := range []string{"a", "b"} {
				go func() { errs <- do(t.Context(), b, []string{"get", key}) }()
				waitQueued(b, i+1)
			}
			close(g.open)
			for range 2 {
				if err := <-errs; err == nil {
					t.Error("the replies were used")
				}
			}
			<-before
			expectEcho(t, b)
			if n := s.seen(); n != 2 {
				t.Errorf("%d conns, want a new one after the error", n)
			}
		})
	}
}

func expectEcho(t *testing.T, b *Batcher) {
	t.Helper()
	batch := b.Get()
	defer b.Put(batch)
	batch.Add("get", "x")
	batch.Add("get", "y")
	if err := b.Do(context.Background(), batch); err != nil || string(batch.Text(0)) != "x" ||
		string(batch.Text(1)) != "y" {
		t.Errorf("%q, %v", batch.texts, err)
	}
}

// TestTruncatedReplies: replies that end halfway are an error of the whole round trip after the timeout.
func TestTruncatedReplies(t *testing.T) {
	t.Parallel()
	b := startServer(t, script{then: bulk("a")}).batcher(t, 100*time.Millisecond, direct)
	if err := do(t.Context(), b, []string{"get", "a"}, []string{"get", "b"}); err == nil {
		t.Error("half of the replies were used")
	}
}

// TestClosedConn: when the server has closed an idle conn the batch is executed on a new one.
func TestClosedConn(t *testing.T) {
	t.Parallel()
	s := startServer(t, script{answered: 1, hangUp: true})
	b := s.batcher(t, testTimeout, direct)
	for range 2 {
		expectEcho(t, b)
	}
	if n := s.seen(); n != 2 {
		t.Errorf("%d conns, want 2", n)
	}
}

// TestPassword: the conns authenticate as the client does.
func TestPassword(t *testing.T) {
	t.Parallel()
	for name, user := range map[string]string{"password": "", "user": "edge"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := miniredis.RunT(t)
			if user == "" {
				server.RequireAuth("secret")
			} else {
				server.RequireUserAuth(user, "secret")
			}
			for password, ok := range map[settings.Secret]bool{"secret": true, "guess": false} {
				client := NewClient(settings.Redis{RedisAddrs: []string{server.Addr()}, RedisUsername: user,
					RedisPassword: password}, testTimeout)
				err := do(t.Context(), newTestBatcher(t, client, 1), []string{"get", "x"})
				if (err == nil) != ok {
					t.Errorf("%t: %v", ok, err)
				}
				_ = client.Close()
			}
		})
	}
}

// TestReplyForms reads every form of reply, and splits commands.
func TestReplyForms(t *testing.T) {
	t.Parallel()
	in := bufio.NewReader(strings.NewReader("+OK\r\n-ERR no\r\n:-42\r\n$-1\r\n$0\r\n\r\n$3\r\na\r\n\r\n"))
	b := &Batch{commands: 6}
	if err := b.read(in); err != nil {
		t.Fatal(err)
	}
	if string(b.Text(0)) != "OK" || b.err == nil || b.Number(2) != -42 || !b.IsNil(3) || b.IsNil(4) ||
		string(b.Text(5)) != "a\r\n" {
		t.Errorf("%+v %q", b.replies, b.texts)
	}
	sent := &Batch{}
	sent.Add("set", "k\r\n", "")
	sent.Add("get", strings.Repeat("x", 12))
	words, rest := splitCommand(sent.wire)
	if len(words) != 3 || words[0] != "set" || words[1] != "k\r\n" || words[2] != "" {
		t.Errorf("%q", words)
	}
	if words, rest = splitCommand(rest); len(words) != 2 || words[1] != "xxxxxxxxxxxx" || len(rest) != 0 {
		t.Errorf("%q %q", words, rest)
	}
}
