// Package link is a TCP proxy between two processes (toxiproxy as a library) that can be slow, narrow, cut,
// reset, or lose responses, and that can be healed. It owns the listening side; the caller decides which
// processes it connects and when it fails.
package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// Set makes links and closes them together.
type Set struct {
	server *toxiproxy.ApiServer
	mu     sync.Mutex
	links  []*Link
}

// NewSet makes an empty set. It turns off toxiproxy's log for the whole process, since that logs every
// connection.
func NewSet() *Set {
	zerolog.SetGlobalLevel(zerolog.Disabled)
	return &Set{server: toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())}
}

// Link is the proxy between two processes.
type Link struct {
	Name     string
	server   *toxiproxy.ApiServer
	listen   string
	upstream string

	mu     sync.Mutex
	proxy  *toxiproxy.Proxy
	toxics []string // names of the toxics that are on it
}

// Open listens at an address and forwards to upstream.
func (s *Set) Open(name, listen, upstream string) (*Link, error) {
	l := &Link{Name: name, server: s.server, listen: listen, upstream: upstream}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("link %s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links = append(s.links, l)
	return l, nil
}

// Close cuts every link for good.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.links {
		l.Cut()
	}
}

func (l *Link) open() error {
	l.proxy = toxiproxy.NewProxy(l.server, l.Name, l.listen, l.upstream)
	return l.proxy.Start()
}

// Addr is where the link listens.
func (l *Link) Addr() string { return l.listen }

// Cut closes every connection and refuses new ones.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proxy.Stop()
}

// toxic is toxiproxy's form of one fault.
type toxic struct {
	Name       string           `json:"name"`
	Type       string           `json:"type"`
	Stream     string           `json:"stream"`
	Toxicity   float32          `json:"toxicity"`
	Attributes map[string]int64 `json:"attributes"`
}

func (l *Link) add(kind, stream string, attributes map[string]int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := toxic{Name: fmt.Sprintf("%s-%s-%d", kind, stream, len(l.toxics)), Type: kind, Stream: stream,
		Toxicity: 1, Attributes: attributes}
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	// The proxy adds a toxic to one connection after the other and may wait for one that stands still; this
	// does not wait for it.
	proxy := l.proxy
	return within(2*time.Second, func() error {
		_, err := proxy.Toxics.AddToxicJson(strings.NewReader(string(text)))
		return err
	}, func() { l.toxics = append(l.toxics, t.Name) })
}

// Slow delays both directions.
func (l *Link) Slow(latency, jitter time.Duration) error {
	a := map[string]int64{"latency": latency.Milliseconds(), "jitter": jitter.Milliseconds()}
	return errors.Join(l.add("latency", up, a), l.add("latency", down, a))
}

// Narrow limits both directions to so many kilobytes a second.
func (l *Link) Narrow(kilobytes int64) error {
	a := map[string]int64{"rate": kilobytes}
	return errors.Join(l.add("bandwidth", up, a), l.add("bandwidth", down, a))
}

// Slice cuts both directions into small packets with pauses of some microseconds.
func (l *Link) Slice(size int64, pause time.Duration) error {
	a := map[string]int64{"average_size": size, "size_variation": size / 2, "delay": pause.Microseconds()}
	return errors.Join(l.add("slicer", up, a), l.add("slicer", down, a))
}

// Stall lets nothing pass and keeps the connections: what was sent arrives after Heal.
func (l *Link) Stall() error { return l.Narrow(0) }

// Deafen forwards requests and loses the responses, except for their first bytes.
func (l *Link) Deafen(bytes int64) error {
	return l.add("limit_data", down, map[string]int64{"bytes": bytes})
}

// Truncate closes a connection after so many bytes were sent over it.
func (l *Link) Truncate(bytes int64) error {
	return l.add("limit_data", up, map[string]int64{"bytes": bytes})
}

// Reset resets every connection at its next byte in either direction.
func (l *Link) Reset() error {
	a := map[string]int64{"timeout": 0}
	return errors.Join(l.add("reset_peer", up, a), l.add("reset_peer", down, a))
}

const (
	up   = "upstream"
	down = "downstream"
)

// Heal removes all faults and accepts connections again. Connections that cannot be healed are closed.
func (l *Link) Heal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	proxy := l.proxy
	if len(l.toxics) > 0 {
		l.toxics = nil
		err := within(2*time.Second, func() error {
			proxy.Toxics.ResetToxics(context.Background())
			return nil
		}, nil)
		if err != nil { // it hangs on a connection whose far end reads nothing
			proxy.Stop()
			return l.reopen()
		}
	}
	if err := proxy.Start(); err != nil && !errors.Is(err, toxiproxy.ErrProxyAlreadyStarted) {
		return l.reopen()
	}
	return nil
}

func (l *Link) reopen() error {
	var err error
	for range 50 {
		if err = l.open(); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond) // another process may hold the port for a moment
	}
	return fmt.Errorf("link %s: %w", l.Name, err)
}

var errHangs = errors.New("the proxy does not answer")

// within runs something that may hang, and then at once, without waiting for it.
func within(limit time.Duration, do func() error, then func()) error {
	if then != nil {
		then()
	}
	done := make(chan error, 1)
	go func() { done <- do() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errHangs
	}
}
