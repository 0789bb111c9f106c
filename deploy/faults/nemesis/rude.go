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
	"storefront.internal/deploy/faults/topology"
)

// Victim is whom rude clients pretend to be.
type Victim struct{ Connection, Key, KeyID, Decision, Item string }

// rude is N15: clients that open connections and say nothing, declare bodies that never come, smuggle one request within another,
// and probe with keys that are none. Whatever they send, nothing of it may be stored: every id is in the history as refused.
type rude struct {
	name, addr string
	victim     Victim
	seed       uint64
	recorder   *history.Recorder
	idle       int

	cancel context.CancelFunc
	done   sync.WaitGroup
}

func (f *rude) Inject(ctx context.Context) error {
	ctx, f.cancel = context.WithCancel(ctx)
	random := rand.New(rand.NewPCG(f.seed, 15)) //nolint:gosec // ids of a test
	attacks := f.attacks(random)
	f.done.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			f.attack(ctx, attacks[i%len(attacks)](id(random)))
		}
	})
	for i := range f.idle {
		f.done.Go(func() { f.hang(ctx, i) })
	}
	return nil
}

func (f *rude) Heal(context.Context) error {
	if f.cancel != nil {
		f.cancel()
		f.done.Wait()
	}
	return nil
}

// hang is a client that sends a byte now and then, or declares a body that it never sends.
func (f *rude) hang(ctx context.Context, i int) {
	for ctx.Err() == nil {
		c, err := net.DialTimeout("tcp", f.addr, 2*time.Second)
		if err != nil {
			_ = topology.Sleep(ctx, time.Second)
			continue
		}
		if i%2 == 0 {
			fmt.Fprintf(c, "POST /v1/connections/%s/storefront-signals HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
				"Content-Length: 250000\r\n\r\n{", f.victim.Connection, f.victim.Key)
		}
		for _, b := range []byte("GET /v1/catalog/items/itm_x HTTP/1.1\r\n") {
			if _, err := c.Write([]byte{b}); err != nil || topology.Sleep(ctx, 500*time.Millisecond) != nil {
				break
			}
		}
		c.Close()
	}
}

// attempt is one request as raw bytes, and the id that it must not leave anywhere.
type attempt struct{ text, id string }

func id(random *rand.Rand) string {
	var b [12]byte
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return "sig_" + hex.EncodeToString(b[:])
}

// attacks are requests whose framing, path, key or body is wrong; each would store a sound signal if it were let through.
func (f *rude) attacks(random *rand.Rand) []func(id string) attempt {
	path := "/v1/connections/" + f.victim.Connection + "/storefront-signals"
	auth := "Authorization: Bearer " + f.victim.Key + "\r\n"
	kind := "Content-Type: application/json\r\n"
	body := func(id string) string {
		text, err := json.Marshal(map[string]any{"signals": []any{map[string]any{"signal_id": id, "type": "dismiss", "decision_id": f.victim.Decision,
			"item_id": f.victim.Item, "occurred_at": time.Now().UTC().Format(time.RFC3339)}}})
		if err != nil {
			panic(err) // of our own making
		}
		return string(text)
	}
	chunked := func(text string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(text), text) }
	raw := func(head func(n int) string, wrap func(string) string) func(string) attempt {
		return func(id string) attempt {
			text := body(id)
			return attempt{head(len(text)) + "\r\n" + wrap(text), id}
		}
	}
	same := func(s string) string { return s }
	post := func(path, headers string, version string) func(n int) string {
		return func(n int) string {
			return fmt.Sprintf("POST %s HTTP/%s\r\nHost: x\r\n%s", path, version, strings.ReplaceAll(headers, "LEN", fmt.Sprint(n)))
		}
	}
	length := "Content-Length: LEN\r\n"
	return []func(string) attempt{
		raw(post(path, auth+kind+length+"Transfer-Encoding: chunked\r\n", "1.1"), chunked),
		raw(post(path, auth+kind+"Transfer-Encoding: chunked\r\n"+length, "1.1"), same),
		raw(post(path, auth+kind+"Transfer-Encoding: xchunked\r\n", "1.1"), chunked),
		raw(post(path, auth+kind+"Transfer-Encoding: chunked\r\n", "1.0"), chunked),
		raw(post(path, auth+kind+length+"Content-Length: 5\r\n", "1.1"), same),
		raw(post(path, auth+kind+"Content-Length: +LEN\r\n", "1.1"), same),
		raw(post(path, auth+auth+kind+length, "1.1"), same),
		raw(post(path, auth+kind+"Content-Encoding: gzip\r\n"+length, "1.1"), same),
		raw(post("/v1/../v1/connections/"+f.victim.Connection+"/storefront-signals", auth+kind+length, "1.1"), same),
		raw(post("//v1/connections/"+f.victim.Connection+"/storefront-signals", auth+kind+length, "1.1"), same),
		raw(post(strings.Replace(path, "/connections", "%2fconnections", 1), auth+kind+length, "1.1"), same),
		raw(post("/v1/connections/con_"+hex.EncodeToString([]byte("another one"))+"/storefront-signals", auth+kind+length, "1.1"), same),
		raw(post(path, "Authorization: Bearer spk_"+strings.Repeat("A", 40)+"\r\n"+kind+length, "1.1"), same),
		raw(post(path, kind+length, "1.1"), same),
		raw(post(path, auth+"Content-Type: text/html\r\n"+length, "1.1"), same),
		raw(post(path, auth+kind+length, "1.1"), func(s string) string { return s[:len(s)-1] + "]" }),
		raw(post(path, auth+kind+length, "1.1"), func(s string) string { return strings.Replace(s, `"type"`, "\"\xff\xfe\"", 1) }),
		func(id string) attempt {
			text := body(id) + strings.Repeat(" ", 300<<10)
			return attempt{post(path, auth+kind+length, "1.1")(len(text)) + "\r\n" + text, id}
		},
		func(id string) attempt {
			text := body(id)
			junk := make([]byte, 200)
			for i := range junk {
				junk[i] = byte(random.Uint32())
			}
			return attempt{string(junk) + "\r\n\r\n" + text, id}
		},
	}
}

// attack sends one request and records what came of it. No answer and a closed connection are a refusal too, but nobody can know;
// the history says so.
func (f *rude) attack(ctx context.Context, a attempt) {
	call := f.recorder.Invoke(history.Event{Op: history.Probe, Client: 900, Edge: f.name, Connection: f.victim.Connection, Key: f.victim.KeyID,
		Signals: []history.Sent{{ID: a.id, Malformed: true}}})
	e := history.Event{Op: history.Probe, Kind: history.Info}
	if err := f.exchange(ctx, a.text, &e); err != nil {
		e.Error = err.Error()
	}
	f.recorder.End(call, e)
	_ = topology.Sleep(ctx, 20*time.Millisecond)
}

func (f *rude) exchange(ctx context.Context, text string, e *history.Event) error {
	dialer := net.Dialer{Timeout: 2 * time.Second}
	c, err := dialer.DialContext(ctx, "tcp", f.addr)
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
		e.Kind = history.OK // which it must not be; the checker knows
	case res.StatusCode < 500:
		e.Kind = history.Fail
	}
	return nil
}

func (n *Nemesis) rude() (Case, bool) {
	if n.Victim == nil {
		return Case{}, false
	}
	v := n.Victim(rand.New(rand.NewPCG(n.Seed, n.random.Uint64()))) //nolint:gosec // how much it draws is none of the schedule's business
	if v.Decision == "" || v.Item == "" {
		return Case{}, false
	}
	edge := pick(n, n.Topology.Edges...)
	f := &rude{name: edge.Name, addr: strings.TrimPrefix(edge.URL, "http://"), victim: v, seed: n.random.Uint64(), recorder: n.Recorder, idle: 100 + n.random.IntN(400)}
	return Case{Fault: f, Detail: fmt.Sprintf("rude clients at %s, %d of them hang", edge.Name, f.idle), Touches: []string{"rude"},
		Hold: n.between(5*time.Second, 15*time.Second)}, true
}
