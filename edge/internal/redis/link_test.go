package redis

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

	goredis "github.com/redis/go-redis/v9"

	"storefront.internal/shared/settings"
)

// script is what a planted server does with the flights of one connection: whole answers, then something else. Of the
// something, {mark} is the flight's own mark.
type script struct {
	whole int
	then  string
}

// planted is a server that answers `get k` with k, connection after connection by the scripts; behind the last of them
// it behaves.
type planted struct {
	listener net.Listener
	work     sync.WaitGroup

	mu          sync.Mutex
	connections int
}

func plant(t *testing.T, scripts ...script) *planted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &planted{listener: l}
	s.work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			plan := script{whole: 1 << 30}
			if s.connections < len(scripts) {
				plan = scripts[s.connections]
			}
			s.connections++
			s.mu.Unlock()
			s.work.Go(func() { serve(conn, plan) })
		}
	})
	return s
}

// pipeline is one of a client of the server; the server ends behind it.
func (s *planted) pipeline(t *testing.T, budget time.Duration) *Pipeline {
	client := newClient(settings.Redis{RedisAddrs: []string{s.listener.Addr().String()}}, budget)
	p := newPipeline(client, 1, budget)
	t.Cleanup(func() {
		p.Close()
		_ = client.Close()
		_ = s.listener.Close()
		s.work.Wait()
	})
	return p
}

func (s *planted) seen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connections
}

// serve answers commands flight by flight: one ends with its echo.
func serve(conn net.Conn, plan script) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for flight := 0; ; flight++ {
		var answers strings.Builder
		for {
			words, err := readCommand(in)
			if err != nil {
				return
			}
			last := words[len(words)-1]
			if words[0] == "echo" && flight >= plan.whole {
				_, _ = io.WriteString(conn, strings.ReplaceAll(plan.then, "{mark}", bulk(last)))
				_, _ = io.Copy(io.Discard, conn) // until the client lets go
				return
			}
			answers.WriteString(bulk(last))
			if words[0] == "echo" {
				break
			}
		}
		if _, err := io.WriteString(conn, answers.String()); err != nil {
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

// TestStreamThatLosesItsPlace: answers that are short, garbled, too many or somebody else's are nobody's. Each request of
// the flight hears an error, the connection is given up, and the next flight is answered right.
func TestStreamThatLosesItsPlace(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]string{
		"no answer's first byte":     "what\r\n",
		"a length that is no number": "$x\r\n",
		"a length beyond reason":     "$99999999999\r\n",
		"a text longer than said":    "$1\r\nab\r\n" + bulk("b") + "{mark}",
		"a line without its end":     "$1\na\r\n" + bulk("b") + "{mark}",
		"an array":                   "*1\r\n" + bulk("a") + bulk("b") + "{mark}",
		"an answer too many":         bulk("stale") + bulk("a") + bulk("b") + "{mark}",
		"one too many behind":        bulk("a") + bulk("b") + "{mark}" + bulk("more"),
		"an answer too few":          bulk("b") + "{mark}+PONG\r\n",
		"the mark of another":        bulk("a") + bulk("b") + bulk("4711"),
		"a number of many digits":    ":99999999999999999999\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := plant(t, script{whole: 1, then: then})
			p := s.pipeline(t, patience)
			expectEcho(t, p)
			first, second := p.batch(), p.batch()
			defer p.free(first)
			defer p.free(second)
			first.add("get", "a")
			second.add("get", "b")
			p.out = 1
			p.fly([]*batch{first, second})
			if <-second.told || first.err == nil || second.err == nil {
				t.Errorf("believed: %v, %v", first.err, second.err)
			}
			expectEcho(t, p)
			if n := s.seen(); n != 2 {
				t.Errorf("%d connections, want a new one after the fault", n)
			}
		})
	}
}

func expectEcho(t *testing.T, p *Pipeline) {
	t.Helper()
	b := p.batch()
	defer p.free(b)
	b.add("get", "x")
	b.add("get", "y")
	if err := p.Do(context.Background(), b); err != nil || string(b.text(0)) != "x" || string(b.text(1)) != "y" {
		t.Errorf("%q, %v", b.room, err)
	}
}

// TestStreamThatStops: answers that end halfway are an error of the whole flight when the time is over.
func TestStreamThatStops(t *testing.T) {
	t.Parallel()
	s := plant(t, script{then: bulk("a")})
	p := s.pipeline(t, 100*time.Millisecond)
	if err := ask(t.Context(), p, []string{"get", "a"}, []string{"get", "b"}); err == nil {
		t.Error("half an answer was believed")
	}
}

// TestConnectionThatWasClosed: an idle connection that the server closed costs nothing but a new one.
func TestConnectionThatWasClosed(t *testing.T) {
	t.Parallel()
	client, _ := open(t)
	p := pipeline(t, client, 1)
	get := []string{"get", "nothing"}
	if err := ask(t.Context(), p, get); err != nil {
		t.Fatal(err)
	}
	_ = p.carrier.(*links).idle[0].conn.(*net.TCPConn).CloseWrite() // the server answers it by closing
	if err := ask(t.Context(), p, get); err != nil {
		t.Error(err)
	}
}

// TestPassword: connections of its own say who they are.
func TestPassword(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]*goredis.Options{
		"password": {Password: "secret"}, "user": {Username: "edge", Password: "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newGuarded(t, opts)
			opts.Addr = server
			client := goredis.NewClient(opts)
			t.Cleanup(func() { _ = client.Close() })
			p := pipeline(t, client, 1)
			if err := ask(t.Context(), p, []string{"get", "x"}); err != nil {
				t.Error(err)
			}
			wrong := *client.Options()
			wrong.Password = "guess"
			stranger := goredis.NewClient(&wrong)
			t.Cleanup(func() { _ = stranger.Close() })
			if err := ask(t.Context(), pipeline(t, stranger, 1), []string{"get", "x"}); err == nil {
				t.Error("a wrong password went unnoticed")
			}
		})
	}
}

// TestReplyForms reads what a server may say, and splits what is sent.
func TestReplyForms(t *testing.T) {
	t.Parallel()
	in := bufio.NewReader(strings.NewReader("+OK\r\n-ERR no\r\n:-42\r\n$-1\r\n$0\r\n\r\n$3\r\na\r\n\r\n"))
	b := &batch{commands: 6}
	if err := b.read(in); err != nil {
		t.Fatal(err)
	}
	if string(b.text(0)) != "OK" || b.err == nil || b.number(2) != -42 || !b.isNil(3) || b.isNil(4) || string(b.text(5)) != "a\r\n" {
		t.Errorf("%+v %q", b.replies, b.room)
	}
	sent := &batch{}
	sent.add("set", "k\r\n", "")
	sent.add("get", strings.Repeat("x", 12))
	words, rest := splitCommand(sent.wire)
	if len(words) != 3 || words[0] != "set" || words[1] != "k\r\n" || words[2] != "" {
		t.Errorf("%q", words)
	}
	if words, rest = splitCommand(rest); len(words) != 2 || words[1] != "xxxxxxxxxxxx" || len(rest) != 0 {
		t.Errorf("%q %q", words, rest)
	}
}
