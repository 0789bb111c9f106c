package bench

import (
	"bytes"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// engine answers `created` to all interactions and counts them, as cheaply as an engine can. It recommends
// what it is told to.
type engine struct {
	url             string
	got, requests   atomic.Int64
	mu              sync.Mutex
	begun, newest   time.Time
	arrived         func(id []byte) // called for each interaction, unless nil
	interactionName []byte
	recommendation  []byte // the answer to each request for one
}

func newEngine(b *testing.B, token string) *engine {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(b, err)
	e := &engine{url: "http://" + l.Addr().String(), interactionName: []byte(`"signal_id":"`)}
	bearer := []byte("Bearer " + token)
	server := &fasthttp.Server{MaxRequestBodySize: 16 << 20, Handler: func(ctx *fasthttp.RequestCtx) {
		if !bytes.Equal(ctx.Request.Header.Peek("Authorization"), bearer) {
			ctx.SetStatusCode(fasthttp.StatusUnauthorized)
			return
		}
		if string(ctx.Path()) == "/v1/recommendations" {
			ctx.SetContentType("application/json")
			ctx.SetBody(e.recommendation)
			return
		}
		e.take(ctx)
	}}
	go func() { _ = server.Serve(l) }()
	b.Cleanup(func() { _ = server.Shutdown() })
	return e
}

func (e *engine) take(ctx *fasthttp.RequestCtx) {
	now, n := time.Now(), 0
	out := []byte(`{"results":[`)
	for body := ctx.PostBody(); ; n++ {
		_, rest, found := bytes.Cut(body, e.interactionName)
		if !found {
			break
		}
		body = rest
		if e.arrived != nil {
			id, _, _ := bytes.Cut(rest, []byte{'"'})
			e.arrived(id)
		}
		if n > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(append(out, `{"index":`...), int64(n), 10)
		out = append(out, `,"status":"created"}`...)
	}
	ctx.SetContentType("application/json")
	ctx.SetBody(append(out, `]}`...))
	e.mu.Lock()
	if e.begun.IsZero() {
		e.begun = now
	}
	e.newest = now
	e.mu.Unlock()
	e.requests.Add(1)
	e.got.Add(int64(n))
}

// awaits waits for so many interactions and returns the rate a second at which they arrived.
func (e *engine) awaits(b *testing.B, n int64) float64 {
	b.Helper()
	for deadline := time.Now().Add(5 * time.Minute); e.got.Load() < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("%d of %d interactions arrived", e.got.Load(), n)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return float64(n) / e.newest.Sub(e.begun).Seconds()
}

func (e *engine) perRequest() float64 { return float64(e.got.Load()) / float64(e.requests.Load()) }
