package nemesis

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/faults/load"
	"storefront.internal/deploy/stack"
	"storefront.internal/shared/backoff"
)

// abusiveClients open connections and send nothing, announce bodies that never come, smuggle requests, and
// use forged keys. Nothing that they send may be stored: the history has each id as malformed.
type abusiveClients struct {
	edge     *stack.Process
	target   load.Target
	seed     uint64
	recorder *history.Recorder
	hanging  int // number of clients that hang
}

func (f *abusiveClients) run(ctx context.Context) {
	random := rand.New(rand.NewPCG(f.seed, 15)) // ids of a test
	attacks := f.attacks(random)
	var all sync.WaitGroup
	for i := range f.hanging {
		all.Go(func() { f.hang(ctx, i) })
	}
	for i := 0; ctx.Err() == nil; i++ {
		f.attack(ctx, attacks[i%len(attacks)](randomID(random)))
	}
	all.Wait()
}

func (f *abusiveClients) addr() string { return strings.TrimPrefix(f.edge.URL, "http://") }

// hang is a client that sends a byte every half second. Every other one announces a body before.
func (f *abusiveClients) hang(ctx context.Context, i int) {
	for ctx.Err() == nil {
		c, err := net.DialTimeout("tcp", f.addr(), 2*time.Second)
		if err != nil {
			_ = backoff.Sleep(ctx, time.Second)
			continue
		}
		if i%2 == 0 {
			fmt.Fprintf(c, "POST /v1/connections/%s/storefront-signals HTTP/1.1\r\nHost: "+
				"x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
				"Content-Length: 250000\r\n\r\n{", f.target.Connection, f.target.Key.Secret)
		}
		for _, b := range []byte("GET /v1/catalog/items/itm_x HTTP/1.1\r\n") {
			if _, err := c.Write([]byte{b}); err != nil || backoff.Sleep(ctx, 500*time.Millisecond) != nil {
				break
			}
		}
		c.Close()
	}
}

// rawRequest is the bytes of a request and the signal id in it, which must not be stored.
type rawRequest struct{ text, id string }

func randomID(random *rand.Rand) string {
	var b [12]byte
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return "sig_" + hex.EncodeToString(b[:])
}

// attacks makes requests with an invalid framing, path, key or body around a valid signal.
func (f *abusiveClients) attacks(random *rand.Rand) []func(id string) rawRequest {
	path := "/v1/connections/" + f.target.Connection + "/storefront-signals"
	auth := "Authorization: Bearer " + f.target.Key.Secret + "\r\n"
	kind := "Content-Type: application/json\r\n"
	body := func(id string) string {
		text, err := json.Marshal(map[string]any{"signals": []any{map[string]any{"signal_id": id,
			"type": "dismiss", "decision_id": f.target.Decision,
			"item_id": f.target.Item, "occurred_at": time.Now().UTC().Format(time.RFC3339)}}})
		if err != nil {
			panic(err) // the value is made by this program
		}
		return string(text)
	}
	chunked := func(text string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(text), text) }
	raw := func(head func(n int) string, wrap func(string) string) func(string) rawRequest {
		return func(id string) rawRequest {
			text := body(id)
			return rawRequest{head(len(text)) + "\r\n" + wrap(text), id}
		}
	}
	same := func(s string) string { return s }
	post := func(path, headers string, version string) func(n int) string {
		return func(n int) string {
			return fmt.Sprintf("POST %s HTTP/%s\r\nHost: x\r\n%s", path, version,
				strings.ReplaceAll(headers, "LEN", fmt.Sprint(n)))
		}
	}
	length := "Content-Length: LEN\r\n"
	return []func(string) rawRequest{
		raw(post(path, auth+kind+length+"Transfer-Encoding: chunked\r\n", "1.1"), chunked),
		raw(post(path, auth+kind+"Transfer-Encoding: chunked\r\n"+length, "1.1"), same),
		raw(post(path, auth+kind+"Transfer-Encoding: xchunked\r\n", "1.1"), chunked),
		raw(post(path, auth+kind+"Transfer-Encoding: chunked\r\n", "1.0"), chunked),
		raw(post(path, auth+kind+length+"Content-Length: 5\r\n", "1.1"), same),
		raw(post(path, auth+kind+"Content-Length: +LEN\r\n", "1.1"), same),
		raw(post(path, auth+auth+kind+length, "1.1"), same),
		raw(post(path, auth+kind+"Content-Encoding: gzip\r\n"+length, "1.1"), same),
		raw(post("/v1/../v1/connections/"+f.target.Connection+"/storefront-signals", auth+kind+length, "1.1"),
			same),
		raw(post("//v1/connections/"+f.target.Connection+"/storefront-signals", auth+kind+length, "1.1"),
			same),
		raw(post(strings.Replace(path, "/connections", "%2fconnections", 1), auth+kind+length, "1.1"), same),
		raw(post("/v1/connections/con_"+hex.EncodeToString([]byte("another one"))+"/storefront-signals",
			auth+kind+length, "1.1"), same),
		raw(post(path, "Authorization: Bearer spk_"+strings.Repeat("A", 40)+"\r\n"+kind+length, "1.1"), same),
		raw(post(path, kind+length, "1.1"), same),
		raw(post(path, auth+"Content-Type: text/html\r\n"+length, "1.1"), same),
		raw(post(path, auth+kind+length, "1.1"), func(s string) string { return s[:len(s)-1] + "]" }),
		raw(post(path, auth+kind+length, "1.1"), func(s string) string {
			return strings.Replace(s, `"type"`,
				"\"\xff\xfe\"", 1)
		}),
		func(id string) rawRequest {
			text := body(id) + strings.Repeat(" ", 300<<10)
			return rawRequest{post(path, auth+kind+length, "1.1")(len(text)) + "\r\n" + text, id}
		},
		func(id string) rawRequest {
			text := body(id)
			junk := make([]byte, 200)
			for i := range junk {
				junk[i] = byte(random.Uint32())
			}
			return rawRequest{string(junk) + "\r\n\r\n" + text, id}
		},
	}
}

// attack sends one request and records its outcome. A closed connection without a response has an unknown
// outcome.
func (f *abusiveClients) attack(ctx context.Context, a rawRequest) {
	call := f.recorder.Invoke(history.Event{Op: history.Probe, Client: 900, Edge: f.edge.Name,
		Connection: f.target.Connection, Key: f.target.Key.APIKeyID,
		Signals: []history.SentSignal{{ID: a.id, Malformed: true}}})
	e := history.Event{Op: history.Probe, Kind: history.Info}
	if err := f.exchange(ctx, a.text, &e); err != nil {
		e.Error = err.Error()
	}
	f.recorder.Complete(call, e)
	_ = backoff.Sleep(ctx, 20*time.Millisecond)
}

func (f *abusiveClients) exchange(ctx context.Context, text string, e *history.Event) error {
	dialer := net.Dialer{Timeout: 2 * time.Second}
	c, err := dialer.DialContext(ctx, "tcp", f.addr())
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(3 * time.Second))
	if _, err := c.Write([]byte(text)); err != nil {
		return err
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	e.Status = res.StatusCode
	switch {
	case res.StatusCode < 400:
		e.Kind = history.OK // the checker reports it
	case res.StatusCode < 500:
		e.Kind = history.Fail
	}
	return nil
}

// N15: run abusive clients against an edge.
func (n *Nemesis) abuse() (Operation, bool) {
	if n.Target == nil {
		return Operation{}, false
	}
	// A random source of its own keeps the schedule independent of the load.
	target := n.Target(rand.New(rand.NewPCG(n.Seed, n.random.Uint64()))) // not secret
	if target.Decision == "" || target.Item == "" {
		return Operation{}, false
	}
	f := &abusiveClients{edge: pick(n, n.Topology.Edges...), target: target, seed: n.random.Uint64(),
		recorder: n.Recorder,
		hanging:  100 + n.random.IntN(400)}
	return Operation{Fault: &background{run: f.run},
		Detail:  fmt.Sprintf("abusive clients at %s, %d of them hang", f.edge.Name, f.hanging),
		Targets: []string{"abusive clients"}, Duration: n.randomDuration(5*time.Second, 15*time.Second)}, true
}
