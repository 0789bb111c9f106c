package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"storefront.internal/edge/internal/access"
	"storefront.internal/edge/internal/itemread"
	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/problem"
	"storefront.internal/shared/storekey"
)

// oneItem is a store with one item, cachedItem a cache of it.
type oneItem struct{ body []byte }

func (o oneItem) Item(context.Context, itemread.Key, int64) (itemread.Version, bool, error) {
	return itemread.Version{Revision: 9, Body: o.body}, true, nil
}

func (oneItem) Exist(context.Context, ident.ConnectionID, []ident.ItemID) ([]bool, error) {
	return nil, nil
}

type cachedItem struct{ body []byte }

func (o cachedItem) Item(context.Context, itemread.Key) (itemread.Version, bool, error) {
	return itemread.Version{Revision: 9, Body: o.body}, true, nil
}

func (cachedItem) Fill(context.Context, itemread.Key, itemread.Version) error { return nil }

func (cachedItem) Present(context.Context, ident.ConnectionID, []ident.ItemID) ([]itemread.Presence, error) {
	return nil, nil
}

type oneKey struct{ access.Cache }

func (oneKey) Grant(context.Context, access.Digest) (storekey.Grant, bool, error) {
	return storekey.Grant{KeyID: "key_a", ConnectionID: "con_mine", StoreID: "str_mine",
		Scopes: storekey.AllScopes()}, true, nil
}

func (oneKey) Changes(context.Context, storekey.Change, bool) (access.Log, error) {
	return access.Log{Version: 1}, nil
}

type noCache struct{}

func (noCache) Grant(context.Context, access.Digest) (storekey.Grant, access.CacheState, error) {
	return storekey.Grant{}, access.CacheEmpty, nil
}

func (noCache) Fill(context.Context, access.Digest, storekey.Grant) error { return nil }

func (noCache) Changes(context.Context, storekey.Change, bool) (access.Log, bool, error) {
	return access.Log{Version: 1}, true, nil
}

// itemServer has the real use cases of keys, rates and items, with everything in memory.
func itemServer(b *testing.B, body []byte) *Server {
	b.Helper()
	log, r := slog.New(slog.DiscardHandler), prometheus.NewRegistry()
	resolver := access.New(access.Config{Store: oneKey{}, Cache: noCache{}, Now: time.Now, Logger: log,
		Metrics: access.NewMetrics(r)})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = resolver.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-done })
	return New(Config{Keys: resolver, Problems: problem.New(errorsBase), Now: time.Now,
		ItemTTL: 5 * time.Second,
		Items: itemread.New(itemread.Config{Store: oneItem{body}, Cache: cachedItem{body},
			TTL:      5 * time.Second,
			MaxBytes: 64 << 20, MaxLookups: 8, Now: time.Now, Logger: log, Metrics: itemread.NewMetrics(r)}),
		RateLimiter: ratelimit.New(ratelimit.Config{PerKey: ratelimit.Quota{PerSecond: 1e9, Burst: 1e9},
			PerAddress: ratelimit.Quota{PerSecond: 1e9, Burst: 1e9}}),
		Metrics: NewMetrics(r), Logger: log, LogSample: 100})
}

// BenchmarkItemFromMemory reads an item with everything in memory: the handler alone, and over loopback
// connections beside a handler that answers the same bytes without any check.
func BenchmarkItemFromMemory(b *testing.B) {
	body := make([]byte, 6<<10)
	copy(body, goldenItem(b))
	s, secret := itemServer(b, body), storekey.NewSecret()
	b.Run("handler", func(b *testing.B) {
		var ctx fasthttp.RequestCtx
		ctx.Request.Header.SetMethod("GET")
		ctx.Request.SetRequestURI(itemPath)
		ctx.Request.Header.Set("Authorization", "Bearer "+secret)
		b.ReportAllocs()
		for b.Loop() {
			ctx.Response.Reset()
			s.handle(&ctx)
			if ctx.Response.StatusCode() != 200 {
				b.Fatalf("%d %s", ctx.Response.StatusCode(), ctx.Response.Body())
			}
		}
	})
	request := "GET " + itemPath +
		" HTTP/1.1\r\nHost: edge.example\r\nUser-Agent: Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac " +
		"OS X)\r\nAuthorization: Bearer " + secret + "\r\n\r\n"
	static := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) { respondJSON(ctx, 200, body) },
		NoDefaultServerHeader: true}
	for name, server := range map[string]*fasthttp.Server{"loopback/static": static,
		"loopback/item": s.http} {
		b.Run(name, func(b *testing.B) { overLoopback(b, server, request) })
	}
}

func overLoopback(b *testing.B, server *fasthttp.Server, request string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	defer l.Close()
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		in := bufio.NewReaderSize(conn, 16<<10)
		for pb.Next() {
			if _, err := io.WriteString(conn, request); err != nil {
				b.Error(err)
				return
			}
			if err := skipAnswer(in); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// skipAnswer reads one answer and looks at its length only, because the work of the client is not measured.
func skipAnswer(in *bufio.Reader) error {
	length := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == 2 {
			_, err := in.Discard(length)
			return err
		}
		if value, found := bytes.CutPrefix(line, []byte("Content-Length: ")); found {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
}
