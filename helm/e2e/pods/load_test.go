package pods

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// rate is the number of requests a second of each of the two loads.
const rate = 100

// load sends signals at a constant rate, whatever the answers are, and never sends one again.
type load struct {
	url, name string
	shop      shop
	client    *http.Client

	mu        sync.Mutex
	sent      int
	accepted  []string
	refused   []string
	failures  map[string]int
	first     []string // examples of failures
	latencies []time.Duration
}

// newLoad returns a load on kept connections, or on a new connection for each request. It has an address of
// its own, as another client has. A node forwards a connection for as long as it remembers it, by both of its
// ends: for days, when the pod was killed. With one address for all loads, some of the many new connections
// would have the port of such a one, and would be sent to a pod that is gone.
func newLoad(url, name string, s shop, fresh bool) (*load, error) {
	from, err := newAddress()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}
	return &load{url: url, name: name, shop: s, failures: map[string]int{}, client: &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConns: 64,
			MaxIdleConnsPerHost: 64, DisableKeepAlives: fresh}}}, err
}

// newAddress gives node 0 one more address.
func newAddress() (net.IP, error) {
	shared.loads++
	ip := net.IPv4(10, 89, 1, byte(shared.loads))
	_, err := run("ip", "address", "add", ip.String()+"/32", "dev", "node0")
	return ip, err
}

// run sends until ctx ends, and waits for the answers.
func (l *load) run(ctx context.Context) {
	began := time.Now()
	var all sync.WaitGroup
	for n := 0; ; n++ {
		due := began.Add(time.Duration(n) * time.Second / rate)
		select {
		case <-ctx.Done():
			all.Wait()
			l.client.CloseIdleConnections()
			return
		case <-time.After(time.Until(due)):
		}
		id := fmt.Sprintf("sig_%s-%d-%d", l.name, began.UnixMilli(), n)
		all.Go(func() { l.send(id) })
	}
}

func (l *load) send(id string) {
	began := time.Now()
	failure := l.post(id)
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	if failure == "" {
		l.accepted = append(l.accepted, id)
		l.latencies = append(l.latencies, took)
		return
	}
	l.refused = append(l.refused, id)
	l.failures[failure]++
	if len(l.first) < 5 {
		l.first = append(l.first, fmt.Sprintf("%s after %s: %s", began.UTC().Format("15:04:05.000"),
			took.Round(time.Millisecond), failure))
	}
}

// post sends a signal and returns what went wrong.
func (l *load) post(id string) string {
	const form = `{"signals":[{"signal_id":%q,"type":"impression","occurred_at":%q,"decision_id":%q}]}`
	body := fmt.Sprintf(form, id, time.Now().UTC().Format(time.RFC3339), l.shop.decision)
	var tries atomic.Int32
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { tries.Add(1) }})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost,
		l.url+"/v1/connections/"+l.shop.connection+"/storefront-signals", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	r.GetBody = nil // what was not written is not sent again either
	r.Header.Set("Authorization", "Bearer "+l.shop.key)
	r.Header.Set("Content-Type", "application/json")
	res, err := l.client.Do(r)
	if err != nil {
		text := err.Error()
		if errors.Is(err, context.DeadlineExceeded) {
			text = fmt.Sprintf("out of time with %d connections", tries.Load())
		}
		return text[strings.LastIndex(text, `": `)+1:]
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err.Error()
	case tries.Load() > 1:
		return "sent again by the client"
	case res.StatusCode != http.StatusAccepted:
		return fmt.Sprintf("%d %.80s", res.StatusCode, text)
	}
	var answer struct{ Results []struct{ Status string } }
	if json.Unmarshal(text, &answer) != nil || len(answer.Results) != 1 ||
		answer.Results[0].Status != "accepted" {
		return "202 " + string(text)
	}
	return ""
}

func (l *load) failed() int { return l.sent - len(l.accepted) }

func (l *load) String() string {
	slices.Sort(l.latencies)
	at := func(q float64) time.Duration {
		if len(l.latencies) == 0 {
			return 0
		}
		return l.latencies[int(q*float64(len(l.latencies)-1))].Round(100 * time.Microsecond)
	}
	text := fmt.Sprintf("%s: sent %d, accepted %d, failed %d; p50 %s, p99 %s, longest %s", l.name, l.sent,
		len(l.accepted), l.failed(), at(.5), at(.99), at(1))
	for _, what := range slices.Sorted(maps.Keys(l.failures)) {
		text += fmt.Sprintf("\n    %d × %s", l.failures[what], what)
	}
	for _, one := range l.first {
		text += "\n    " + one
	}
	return text
}

// receive asks the engine for the signals that it got since the last call, and counts what it created.
func (e *environment) receive(t *testing.T) {
	t.Helper()
	var answer struct {
		Interactions []struct {
			Result      string
			Interaction struct {
				SignalID string `json:"signal_id"`
			}
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		fmt.Sprintf("%s/debug/interactions?since=%d", serviceURL(t, "engine", 9300), e.receipts), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	e.receipts += len(answer.Interactions)
	for _, one := range answer.Interactions {
		if one.Result == "created" {
			e.created[one.Interaction.SignalID]++
		}
	}
}

// serviceURL returns the URL of a Service by its cluster address.
func serviceURL(t *testing.T, name string, port int) string {
	t.Helper()
	ip, err := kubectl("-n", namespace, "get", "service", name, "-o", "jsonpath={.spec.clusterIP}")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://%s:%d", ip, port)
}
