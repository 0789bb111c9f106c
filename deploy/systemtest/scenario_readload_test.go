package systemtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"storefront.internal/deploy/democonnector/connector"
	"storefront.internal/deploy/local/redis"
	"storefront.internal/deploy/stack"
)

// Redis is killed under a load of reads and comes back empty. No read fails, no edge answers with an older
// revision after a newer one, and changes go on reaching the readers.
func testReadsWithoutRedis(t *testing.T) {
	t.Parallel()
	path, found := redis.Find()
	if !found {
		unavailable(t, fmt.Errorf("no redis-server"))
	}
	config := redis.Config{Path: path, Dir: folder(t, t.TempDir(), "redis"), Port: port(t), Log: io.Discard}
	server, err := redis.Start(context.Background(), config)
	check(t, err)
	t.Cleanup(func() { _ = server.Close() })
	x := newDeployment(t, func(s *stack.Settings) { s.RedisAddr = server.Addr() })
	edges := []*stack.Process{x.edge("EDGE_ITEM_TTL=1s"), x.edge("EDGE_ITEM_TTL=1s")}
	s := x.newStorefront()
	var ids []string
	for _, r := range s.deliverAccepted(things(20, 1)...) {
		ids = append(ids, r.EntityID)
	}

	l := startReaders(t, s, edges, ids)
	revision := int64(1)
	change := func(within time.Duration) {
		t.Helper()
		revision++
		s.deliverAccepted(things(20, revision)...)
		for _, edge := range edges {
			eventually(t, within, "the change", func() error {
				got, err := s.read(edge, ids[7], "")
				if err == nil && got.Item.Title["es"] != fmt.Sprint("v", revision) {
					err = fmt.Errorf("answer %d %s", got.Status, got.body)
				}
				return err
			})
		}
	}
	for range 3 {
		change(10 * time.Second)
	}
	server.Kill()
	for range 3 {
		change(10 * time.Second)
	}
	server, err = redis.Start(context.Background(), config)
	check(t, err)
	for range 3 {
		change(10 * time.Second)
	}
	l.stop(t)
	t.Logf("%d reads, the slowest took %s", l.reads.Load(), time.Duration(l.slowest.Load()))
}

func things(n int, revision int64) []connector.Observation {
	all := make([]connector.Observation, n)
	for i := range all {
		all[i] = product(fmt.Sprintf("thing-%02d", i), revision, fmt.Sprint("v", revision))
	}
	return all
}

// readers read items in turn and check every response.
type readers struct {
	reads, slowest atomic.Int64
	over           chan struct{}
	all            sync.WaitGroup
}

// startReaders starts four readers for each edge. No reader of an edge may get an older revision than another
// one got before.
func startReaders(t *testing.T, s *storefront, edges []*stack.Process, ids []string) *readers {
	l := &readers{over: make(chan struct{})}
	for _, edge := range edges {
		newest := make([]atomic.Int64, len(ids))
		for range 4 {
			l.all.Go(func() { l.read(t, s, edge, ids, newest) })
		}
	}
	return l
}

func (l *readers) read(t *testing.T, s *storefront, edge *stack.Process, ids []string,
	newest []atomic.Int64) {
	pause := time.NewTicker(2 * time.Millisecond) // a load, and yet room for the other tests
	defer pause.Stop()
	for i := 0; ; i = (i + 1) % len(ids) {
		select {
		case <-l.over:
			return
		case <-pause.C:
		}
		floor, begun := newest[i].Load(), time.Now()
		got, err := s.read(edge, ids[i], "")
		took := int64(time.Since(begun))
		l.reads.Add(1)
		for old := l.slowest.Load(); took > old &&
			!l.slowest.CompareAndSwap(old, took); old = l.slowest.Load() {
		}
		switch {
		case err != nil || got.Status != http.StatusOK:
			t.Errorf("read: %d %s %v", got.Status, got.body, err)
			return
		case got.Revision < floor:
			t.Errorf("%s: revision %d after %d", filepath.Base(edge.URL), got.Revision, floor)
			return
		}
		for old := newest[i].Load(); got.Revision > old &&
			!newest[i].CompareAndSwap(old, got.Revision); old = newest[i].Load() {
		}
	}
}

func (l *readers) stop(t *testing.T) {
	t.Helper()
	close(l.over)
	l.all.Wait()
	if l.reads.Load() < 100 {
		t.Errorf("only %d reads", l.reads.Load())
	}
}
