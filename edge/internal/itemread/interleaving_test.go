package itemread

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// world is a PostgreSQL, a Redis and three edges, with reads that pause between a store's read and its
// answer, and pushes that arrive late, twice or never.
type world struct {
	t      *rapid.T
	stores *stores
	edges  []*Service
	// by edge: the greatest revision whose answer was given before the next read began
	answered []map[Key]int64
	pushes   []pushed
	held     chan struct{} // closed when the paused reads continue
	running  int
	ended    chan ended
	gone     []*Service
	lastDown time.Time // when PostgreSQL was last down; an unverified copy of then is served for a second
}

type pushed struct {
	k Key
	v Version
}

// GoString keeps a failed test's output readable: the body follows from the revision.
func (p pushed) GoString() string {
	return fmt.Sprintf("revision %d of %s, deleted %t", p.v.Revision, p.k.Item, p.v.deleted())
}

type ended struct {
	edge  int
	k     Key
	floor int64 // what was answered before the read began
	begun time.Time
	doc   *Document
	err   error
}

func (w *world) key() Key {
	return Key{"con_1", ident.ItemID(fmt.Sprint("itm_", rapid.IntRange(0, 2).Draw(w.t, "item")))}
}

func (w *world) change() {
	k := w.key()
	v := Version{Revision: w.stores.rows[k].Revision + 1}
	if rapid.IntRange(0, 4).Draw(w.t, "delete") > 0 {
		v.Body = body(v.Revision)
	}
	w.stores.set(func() { w.stores.rows[k] = v })
	w.pushes = append(w.pushes, pushed{k, v})
}

// push delivers any of the pushes; it may be delivered again.
func (w *world) push() {
	if len(w.pushes) == 0 {
		return
	}
	p := rapid.SampledFrom(w.pushes).Draw(w.t, "push")
	_ = cachePort{w.stores}.Fill(context.Background(), p.k, p.v)
	if rapid.Bool().Draw(w.t, "hint") {
		for _, e := range w.edges {
			e.Changed(p.k, p.v.Revision)
		}
	}
}

// forget makes Redis lose everything, or fail over to a replica with older versions.
func (w *world) forget() {
	w.stores.set(func() { w.stores.cached = map[Key]Version{} })
	if len(w.pushes) > 0 && rapid.Bool().Draw(w.t, "older") {
		p := rapid.SampledFrom(w.pushes).Draw(w.t, "version")
		w.stores.set(func() { w.stores.cached[p.k] = p.v })
	}
}

func (w *world) faults() {
	down, cut := rapid.IntRange(0, 2).Draw(w.t, "store") == 0, rapid.IntRange(0, 2).Draw(w.t, "cache") == 0
	w.stores.set(func() {
		if w.stores.storeDown {
			w.lastDown = time.Now()
		}
		w.stores.storeDown, w.stores.cacheDown = down, cut
	})
}

// restart replaces the process of an edge, which clients do not notice.
func (w *world) restart() {
	n := rapid.IntRange(0, len(w.edges)-1).Draw(w.t, "restarted")
	w.gone = append(w.gone, w.edges[n])
	w.edges[n] = w.start()
}

func (w *world) start() *Service {
	return newService(w.stores, func(c *Config) { c.MaxBytes = 64 << 10 })
}

// unverified reports whether an answer may be an unverified copy, because PostgreSQL was down.
func (w *world) unproven(e ended) bool {
	return w.stores.storeDown || !w.lastDown.IsZero() &&
		w.lastDown.Add(staleTTL).After(e.begun.Add(-time.Nanosecond))
}

// read starts a read; it ends now, or pauses in its store until resume.
func (w *world) read() {
	n, k := rapid.IntRange(0, len(w.edges)-1).Draw(w.t, "edge"), w.key()
	pauses := rapid.SampledFrom([]string{"", "store", "cache"}).Draw(w.t, "pauses in")
	held := w.held
	hold := func() { <-held }
	w.stores.set(func() {
		w.stores.before, w.stores.beforeGet = nil, nil
		switch pauses {
		case "store":
			w.stores.before = hold
		case "cache":
			w.stores.beforeGet = hold
		}
	})
	w.running++
	floor, begun, edge := w.answered[n][k], time.Now(), w.edges[n]
	go func() {
		doc, err := edge.Read(context.Background(), Request{ConnectionID: k.Connection, ItemID: k.Item})
		w.ended <- ended{n, k, floor, begun, doc, err}
	}()
	synctest.Wait()
	w.collect()
}

// collect checks the reads that have ended.
func (w *world) collect() {
	for {
		select {
		case e := <-w.ended:
			w.running--
			w.check(e)
		default:
			return
		}
	}
}

func (w *world) check(e ended) {
	switch {
	case e.err == nil:
		if e.doc.Revision < e.floor && !w.unproven(e) {
			w.t.Fatalf("edge %d answered revision %d of %s after %d", e.edge, e.doc.Revision, e.k.Item,
				e.floor)
		}
		if string(e.doc.Body) != string(body(e.doc.Revision)) {
			w.t.Fatalf("revision %d with another body", e.doc.Revision)
		}
		if v := w.stores.rows[e.k]; e.doc.Revision > v.Revision {
			w.t.Fatalf("revision %d was never there", e.doc.Revision)
		}
		w.answered[e.edge][e.k] = max(w.answered[e.edge][e.k], e.doc.Revision)
	case fault.Is(e.err, fault.ServiceUnavailable):
	case fault.Is(e.err, fault.NotFound):
		w.checkMissing(e)
	default:
		w.t.Fatalf("error %v", e.err)
	}
}

// checkMissing accepts a missing item that never existed, that was deleted since the last answer, or whose
// absence is cached for a second.
func (w *world) checkMissing(e ended) {
	var since int64 // the first deletion that it can be
	for _, p := range w.pushes {
		if p.k == e.k && p.v.deleted() && p.v.Revision >= e.floor && (since == 0 || p.v.Revision < since) {
			since = p.v.Revision
		}
	}
	if since == 0 && e.floor > 0 {
		if w.unproven(e) {
			return
		}
		w.t.Fatalf("edge %d answered that %s does not exist after revision %d, and it was never deleted "+
			"since", e.edge, e.k.Item, e.floor)
	}
	if e.floor > 0 { // without an answer before, it may be that it was not there yet
		w.answered[e.edge][e.k] = max(w.answered[e.edge][e.k], since)
	}
}

func (w *world) resume() {
	close(w.held)
	w.held = make(chan struct{})
	synctest.Wait()
	w.collect()
}

func (w *world) pass() {
	time.Sleep(rapid.SampledFrom([]time.Duration{400 * time.Millisecond, time.Second, 3 * time.Second,
		6 * time.Second}).Draw(w.t, "pass"))
	synctest.Wait()
	w.collect()
}

// settle: when no store fails and the TTL has passed, every edge answers what PostgreSQL holds.
func (w *world) settle() {
	w.resume()
	time.Sleep(10 * time.Second)
	synctest.Wait()
	w.collect()
	if w.running > 0 {
		w.t.Fatalf("%d reads never ended", w.running)
	}
	w.stores.set(func() {
		w.stores.storeDown, w.stores.cacheDown, w.stores.before, w.stores.beforeGet = false, false, nil, nil
	})
	for _, p := range w.pushes {
		_ = cachePort{w.stores}.Fill(context.Background(), p.k, p.v)
	}
	for n, e := range w.edges {
		for k, v := range w.stores.rows {
			doc, err := e.Read(context.Background(), Request{ConnectionID: k.Connection, ItemID: k.Item})
			if v.deleted() != fault.Is(err, fault.NotFound) || !v.deleted() &&
				(err != nil || doc.Revision != v.Revision) {
				w.t.Fatalf("edge %d: %v, %v, want revision %d", n, doc, err, v.Revision)
			}
		}
		e.Close(context.Background())
	}
	for _, e := range w.gone {
		e.Close(context.Background())
	}
}

// noDeadline hides the deadline of a test, which may not be asked for in a bubble.
type noDeadline struct{ rapid.TB }

func TestInterleavings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(noDeadline{t}, func(t *rapid.T) {
			w := &world{t: t, stores: newStores(), held: make(chan struct{}), ended: make(chan ended, 1000)}
			for range 3 {
				w.edges = append(w.edges, w.start())
				w.answered = append(w.answered, map[Key]int64{})
			}
			steps := map[string]func(*rapid.T){
				"change": func(*rapid.T) { w.change() }, "push": func(*rapid.T) { w.push() },
				"forget": func(*rapid.T) { w.forget() },
				"faults": func(*rapid.T) { w.faults() }, "read": func(*rapid.T) { w.read() },
				"read again": func(*rapid.T) { w.read() },
				"resume":     func(*rapid.T) { w.resume() }, "pass": func(*rapid.T) { w.pass() },
				"restart": func(*rapid.T) { w.restart() },
			}
			t.Repeat(steps)
			w.settle()
		})
	})
}
