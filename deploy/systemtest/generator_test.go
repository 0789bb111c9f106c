package systemtest

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
)

// generator sends batches of two signals to one edge at a rate that does not depend on the responses: half of
// the batches are impressions, a quarter are clicks, a quarter are purchases. It never resends.
type generator struct {
	client   *fasthttp.HostClient
	shop     *storefront
	decision client.Decision
	url      string
	count    atomic.Int64
	odd      atomic.Pointer[string] // the first answer that should not be
	broken   atomic.Int64           // requests that got no answer
	lines    []string               // what the steps found

	mu             sync.Mutex
	accepted, sent []string
}

func newGenerator(s *storefront, edge *stack.Process, d client.Decision) *generator {
	return &generator{shop: s, decision: d, url: edge.URL + "/v1/connections/" + s.ConnectionID +
		"/storefront-signals",
		client: &fasthttp.HostClient{Addr: strings.TrimPrefix(edge.URL, "http://"), MaxConns: senders,
			MaxIdleConnDuration: 10 * time.Second, MaxIdemponentCallAttempts: 1}}
}

const senders = 1024

// kinds are the types of the batches, from the lowest priority to the highest.
func kinds() []string { return []string{"impression", "click", "purchase"} }

// ramp is the result of one step.
type ramp struct {
	mu      sync.Mutex
	took    []time.Duration // of what was taken
	early   []time.Duration // of what was refused
	taken   int
	offered [3]int // by kind
	refused [3]int
	length  time.Duration
}

func (r *ramp) goodput() float64 { return float64(r.taken) / r.length.Seconds() }

func (r *ramp) shed() int { return r.refused[0] + r.refused[1] + r.refused[2] }

func (r *ramp) percentile(p int) time.Duration { return percentile(r.took, p) }

func percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, len(all)*p/100)]
}

// run sends at a rate a second for a while.
func (g *generator) run(name string, rate float64, length time.Duration) *ramp {
	r := &ramp{length: length}
	due := make(chan struct{}, 4*senders)
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			for range due {
				g.send(r)
			}
		})
	}
	begun, late := time.Now(), 0
	for n := 0; time.Since(begun) < length; time.Sleep(time.Millisecond) {
		for ; float64(n) < rate*time.Since(begun).Seconds(); n++ {
			select {
			case due <- struct{}{}:
			default:
				late++
			}
		}
	}
	close(due)
	all.Wait()
	g.note(name, rate, r, late)
	return r
}

// closed runs some clients, each of which sends its next batch as soon as the last one was answered.
func (g *generator) closed(clients int, length time.Duration) *ramp {
	r := &ramp{length: length}
	var all sync.WaitGroup
	begun := time.Now()
	for range clients {
		all.Go(func() {
			for time.Since(begun) < length {
				g.send(r)
			}
		})
	}
	all.Wait()
	g.note(fmt.Sprint(clients, " clients"), 0, r, 0)
	return r
}

func (g *generator) note(name string, rate float64, r *ramp, late int) {
	share := func(i int) float64 { return 100 * float64(r.refused[i]) / float64(max(1, r.offered[i])) }
	g.lines = append(g.lines,
		fmt.Sprintf("%-10s offered %6.0f/s, taken %6.0f/s, p50 %s p99 %s, refused: impressions %.0f %% "+
			"clicks %.0f %% purchases %.0f %%, refusal p99 %s, not offered %d",
			name, rate, r.goodput(), r.percentile(50).Round(time.Millisecond/10),
			r.percentile(99).Round(time.Millisecond/10), share(0), share(1), share(2),
			percentile(r.early, 99).Round(time.Millisecond/10), late))
}

// send sends one batch.
func (g *generator) send(r *ramp) {
	kind := []int{0, 1, 0, 2}[int(g.count.Add(1))%4]
	body, ids := g.batch(kinds()[kind])
	var request fasthttp.Request
	var response fasthttp.Response
	request.SetRequestURI(g.url)
	request.Header.SetMethod(fasthttp.MethodPost)
	request.Header.SetContentType("application/json")
	request.Header.Set("Authorization", "Bearer "+g.shop.Key)
	request.SetBodyRaw(body)
	begun := time.Now()
	err := g.client.DoTimeout(&request, &response, 20*time.Second)
	took := time.Since(begun)
	status := response.StatusCode()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.offered[kind]++
	g.keep(ids, err == nil && status == fasthttp.StatusAccepted)
	switch {
	case err == nil && status == fasthttp.StatusAccepted:
		r.taken++
		r.took = append(r.took, took)
	case err == nil && status == fasthttp.StatusServiceUnavailable &&
		len(response.Header.Peek("Retry-After")) > 0:
		r.refused[kind]++
		r.early = append(r.early, took)
	case err != nil:
		g.broken.Add(1)
	default:
		g.odd.CompareAndSwap(nil, new(fmt.Sprintf("%d %s", status, response.Body())))
	}
}

func (g *generator) batch(kind string) (body []byte, ids []string) {
	body = append(body, `{"signals":[`...)
	at := client.Timestamp(time.Now().Add(-time.Second))
	for i := range 2 {
		var random [16]byte
		_, _ = rand.Read(random[:])
		id := "sig_" + hex.EncodeToString(random[:])
		ids = append(ids, id)
		if i > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"signal_id":%q,"type":%q,"occurred_at":%q,"decision_id":%q`, id, kind, at,
			g.decision.ID)
		switch kind {
		case "click":
			body = fmt.Appendf(body, `,"item_id":%q`, g.decision.Items[0].ItemID)
		case "purchase":
			body = fmt.Appendf(body, `,"item_id":%q,"quantity":1`, g.decision.Items[0].ItemID)
		}
		body = append(body, '}')
	}
	return append(body, `]}`...), ids
}

func (g *generator) keep(ids []string, accepted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sent = append(g.sent, ids...)
	if accepted {
		g.accepted = append(g.accepted, ids...)
	}
}

func (g *generator) ids() (accepted, sent []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.accepted, g.sent
}
