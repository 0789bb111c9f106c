package systemtest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"storefront.internal/deploy/stack/link"
)

// While a dependency fails, every operation answers what the failure matrix says, in the time that it says,
// and afterwards all answer as usual again. Nothing that was accepted is lost. `make matrix` runs all cells
// and writes the page. MATRIX=short runs a few cells on a machine that does more: it allows a 503 of an
// overloaded edge, and checks only that no answer takes seconds.
func TestFailureMatrix(t *testing.T) {
	t.Parallel()
	if !soaking() && os.Getenv("MATRIX") != "short" {
		t.Skip("it takes minutes: make matrix")
	}
	m := newMatrix(t)
	var page strings.Builder
	for _, c := range failureMatrix() {
		if !soaking() && !c.short {
			continue
		}
		t.Run(c.dependency+" "+c.fault, func(t *testing.T) {
			m.t = t
			m.moreItems(150 - len(m.unread))
			results := m.play(c)
			queue := m.drained()
			for _, w := range c.wantsOf() {
				fmt.Fprintf(&page, "%s %s %s |\n", c.decided(w), merge(w.operations, results), ms(queue))
				m.judge(c, w, results)
			}
		})
	}
	m.t = t
	t.Log("\n" + page.String())
	if path := os.Getenv("MATRIX_PAGE"); path != "" {
		measured := fmt.Sprintf("Measured %s on two cores that the load shares with the deployment.\n\n",
			time.Now().UTC().Format("2006-01-02 15:04 UTC"))
		check(t, os.WriteFile(path, []byte(matrixHead+measured+matrixColumns+page.String()), 0o644))
	}
}

// play makes a dependency fail, measures, and lets it recover.
func (m *matrix) play(c cell) map[string]*measured {
	m.t.Helper()
	m.awaitKeys()
	f := faults()[c.fault]
	f.inject(m, c.dependency)
	results := m.measure()
	f.heal(m, c.dependency)
	m.recover(results)
	if c.fault == cold {
		m.warmClaims()
	}
	return results
}

// fault is one way in which a dependency fails.
type fault struct {
	inject, heal func(m *matrix, dependency string)
}

func faults() map[string]fault {
	pause := func(m *matrix, d string) { check(m.t, m.servers[d].Pause()) }
	resume := func(m *matrix, d string) { check(m.t, m.servers[d].Resume()) }
	heal := func(m *matrix, d string) { m.each(d, (*link.Link).Heal) }
	onLinks := func(do func(*link.Link) error) fault {
		return fault{func(m *matrix, d string) { m.each(d, do) }, heal}
	}
	return map[string]fault{
		refuses: onLinks(func(l *link.Link) error {
			l.Cut()
			return nil
		}),
		killed: {func(m *matrix, d string) { kill(m.t, m.servers[d]) }, func(m *matrix, d string) {
			check(m.t, m.Start(context.Background(), 2*time.Minute, m.servers[d]))
		}},
		hangs: {pause, resume},
		slow:  onLinks(func(l *link.Link) error { return l.Slow(500*time.Millisecond, 0) }),
		cuts:  onLinks(func(l *link.Link) error { return l.Deafen(20) }),
		cold: {func(m *matrix, d string) {
			pause(m, d)
			m.forgetClaims(m.t)
		}, resume},
	}
}

// measured is what was seen of an operation.
type measured struct {
	words  map[string]int
	took   []time.Duration // once the fault was known
	before time.Duration   // the slowest until then
	back   time.Duration
}

// merge is the sum of what was seen of some operations.
func merge(operations []string, results map[string]*measured) *measured {
	sum := &measured{words: map[string]int{}}
	for _, name := range operations {
		r := results[name]
		for w, n := range r.words {
			sum.words[w] += n
		}
		sum.took = append(sum.took, r.took...)
		sum.before, sum.back = max(sum.before, r.before), max(sum.back, r.back)
	}
	slices.Sort(sum.took)
	return sum
}

func (r *measured) quantile(q float64) time.Duration {
	if len(r.took) == 0 {
		return 0
	}
	return r.took[int(q*float64(len(r.took)-1))]
}

// String is the part of a row of the page that is measured.
func (r *measured) String() string {
	var words []string
	for _, w := range slices.Sorted(maps.Keys(r.words)) {
		words = append(words, fmt.Sprintf("%d × %s", r.words[w], w))
	}
	return fmt.Sprintf("%s; %s, %s | %s | %s |", strings.Join(words, ", "), ms(r.quantile(0.5)),
		ms(r.quantile(0.99)), ms(r.before), ms(r.back))
}

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// The time until a fault is known, the longest time that a caller waits, and the longest that an answer takes
// on a machine that does more.
const (
	knownAfter = 7 * time.Second
	answerIn   = 30 * time.Second
	busyWithin = 10 * time.Second
)

// judge compares what was seen with the table.
func (m *matrix) judge(c cell, w want, results map[string]*measured) {
	m.t.Helper()
	for _, o := range operations() {
		if !slices.Contains(w.operations, o.name) {
			continue
		}
		r := results[o.name]
		within, quantile := w.within, 0.99
		if !soaking() {
			within, quantile = busyWithin, 1
		}
		if took := r.quantile(quantile); took > within {
			m.t.Errorf("%s %s: %s takes %s", c.dependency, c.fault, o.name, took)
		}
		right := 0
		for word, n := range r.words {
			switch busy := word == "503" || word == "200 fallback"; {
			case w.allows(o, word):
				right += n
			case !busy || soaking() && 100*n > len(r.took): // of 100 answers, one may be an overload's
				m.t.Errorf("%s %s: %s answers %d × %s", c.dependency, c.fault, o.name, n, word)
			}
		}
		if right == 0 {
			m.t.Errorf("%s %s: %s never answers as decided: %v", c.dependency, c.fault, o.name, r.words)
		}
	}
}

// measure calls every operation until the fault is known and some seconds more.
func (m *matrix) measure() map[string]*measured {
	results := map[string]*measured{}
	until := knownAfter + time.Duration(soak(1500, 4000))*time.Millisecond
	began := time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, o := range operations() {
		r := &measured{words: map[string]int{}}
		results[o.name] = r
		for range soak(1, o.workers) {
			wg.Go(func() {
				// one call is made once the fault is known, however long the ones before took
				for last := false; !last; time.Sleep(o.pause * time.Duration(soak(4, 1))) {
					at := time.Since(began)
					w, took := m.call(o)
					mu.Lock()
					if at < knownAfter {
						r.before = max(r.before, took)
					} else {
						last = time.Since(began) >= until
						r.words[w]++
						r.took = append(r.took, took)
					}
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	for _, r := range results {
		slices.Sort(r.took)
	}
	return results
}

func (m *matrix) call(o operation) (word string, took time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), answerIn)
	defer cancel()
	began := time.Now()
	word = o.call(m, ctx)
	return word, time.Since(began)
}

// recover calls every operation until it answers as usual.
func (m *matrix) recover(results map[string]*measured) {
	m.t.Helper()
	began := time.Now()
	var wg sync.WaitGroup
	for _, o := range operations() {
		wg.Go(func() {
			for word := ""; word != o.usual; time.Sleep(50 * time.Millisecond) {
				word, _ = m.call(o)
				results[o.name].back = time.Since(began)
				if time.Since(began) > time.Minute {
					m.t.Errorf("%s still answers %s a minute after the fault", o.name, word)
					return
				}
			}
		})
	}
	wg.Wait()
}

// drained waits until everything that was accepted is stored and delivered.
func (m *matrix) drained() time.Duration {
	m.t.Helper()
	began := time.Now()
	eventually(m.t, 2*time.Minute, "nothing waits", func() error {
		q, err := m.api.ViewQueue(context.Background())
		if err != nil {
			return err
		}
		stored := m.number("SELECT count(*)::int FROM relay.signals")
		m.mu.Lock()
		defer m.mu.Unlock()
		if q.Total.Pending > 0 || stored < m.accepted {
			return fmt.Errorf("%d are pending, %d of %d are stored", q.Total.Pending, stored, m.accepted)
		}
		return nil
	})
	return time.Since(began)
}
