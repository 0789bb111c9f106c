package engine

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// archive serves the snapshots of control.
type archive struct {
	mu     sync.Mutex
	bodies map[string]string // by path
	spoil  bool              // a wrong Content-Digest
	down   int               // so many answers say 503
}

func (a *archive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	body, there := a.bodies[r.URL.Path]
	switch {
	case r.Header.Get("Authorization") != "Bearer engine":
		w.WriteHeader(401)
		return
	case a.down > 0:
		a.down--
		w.WriteHeader(503)
		return
	case !there:
		w.WriteHeader(404)
		return
	}
	sum := sha256.Sum256([]byte(body))
	if a.spoil {
		sum[0]++
	}
	w.Header().Set("Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
	fmt.Fprint(w, body)
}

// put stores the snapshot of an observation and answers its event.
func (a *archive) put(o Observed, document string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	o.ContentDigest, o.Snapshot = digest([]byte(document)), "canonical"
	snapshot, event := map[string]any{
		"observation_id": o.ObservationID, "provider": "custom", "external_store_id": "s", "entity": o.Entity,
		"external_id": o.ExternalID,
		"revision":    o.Revision, "operation": o.Operation, "content_digest": o.ContentDigest,
	}, map[string]any{"specversion": "1.0", "id": o.ObservationID, "data": o}
	text := mustJSON(snapshot)
	if document != "" {
		text = strings.TrimSuffix(text, "}") + `,"document":` + document + "}"
	}
	a.bodies["/internal/v1/observations/"+o.ObservationID+"/canonical"] = text
	return mustJSON(event)
}

func mustJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func newReader(t *testing.T) (*harness, *archive) {
	t.Helper()
	a := &archive{bodies: map[string]string{}}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	b := newHarness(t)
	b.engine.ReadSnapshots(server.URL, "engine")
	return b, a
}

func (h *harness) observe(events ...string) {
	h.t.Helper()
	if s, a, err := h.post("/v1/observations", "right", "["+strings.Join(events, ",")+"]"); s != 202 ||
		err != nil {
		h.t.Fatal(s, a, err)
	}
}

func (h *harness) results() (all string) {
	for _, r := range h.engine.Readings(0) {
		all += r.Result + " "
	}
	return all
}

func shirt(revision int64) Observed {
	return Observed{ObservationID: fmt.Sprint("obs_", revision), ConnectionID: "con_1", Entity: "product",
		ExternalID: "p1", Revision: revision,
		Operation: "upsert"}
}

const shirtDocument = `{"item": {"item_id":"itm_1","status":"active","taxonomy":[{"taxonomy_id":"tax_1"}]}` +
	`,"variants":[{"variant_id":"var_1"}]}`

// A snapshot counts when the body's digest, the document's digest and every member agree with the event.
func TestSnapshotsAreChecked(t *testing.T) {
	t.Parallel()
	f := func(name, want string, change func(a *archive, event string) string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, a := newReader(t)
			b.observe(change(a, a.put(shirt(1), shirtDocument)))
			if got := b.results(); got != want+" " {
				t.Errorf("results %q, want %q: %+v", got, want, b.engine.Readings(0))
			}
		})
	}
	replaced := func(old, text string) func(*archive, string) string {
		return func(_ *archive, event string) string {
			if !strings.Contains(event, old) {
				t.Fatalf("%s is not in %s", old, event)
			}
			return strings.ReplaceAll(event, old, text)
		}
	}
	f("sound", SnapshotRead, func(_ *archive, event string) string { return event })
	f("another digest", SnapshotMismatch, replaced(`sha256:`, `sha256:0`))
	f("another revision", SnapshotMismatch, replaced(`"revision":1`, `"revision":2`))
	f("another entity", SnapshotMismatch, replaced(`"p1"`, `"p2"`))
	f("a delete", SnapshotMismatch, replaced(`"upsert"`, `"delete"`))
	f("unknown", SnapshotMissing, replaced(`obs_1`, `obs_2`))
	f("raw, which is not there", SnapshotMissing, replaced(`canonical`, `raw`))
	f("wrong Content-Digest", SnapshotMismatch,
		func(a *archive, event string) string { a.spoil = true; return event })
	f("changed document", SnapshotMismatch, func(a *archive, event string) string {
		for path, body := range a.bodies {
			a.bodies[path] = strings.Replace(body, "itm_1", "itm_2", 1)
		}
		return event
	})
	f("raw", SnapshotRead, func(a *archive, event string) string {
		a.bodies["/internal/v1/observations/obs_1/raw"] = shirtDocument
		return strings.ReplaceAll(event, "canonical", "raw")
	})
}

// A provider's own product is recommended under the id that the event names, while the platform has it on
// sale.
func TestRecommendsWhatAPlatformSells(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]int{
		`{"id":1,"published":true}`: 1, `{"id":1,"published":false}`: 0, `{"status":"ACTIVE"}`: 1,
		`{"status":"publish"}`: 1, `{"status":"draft"}`: 0, `[]`: 0,
	} {
		b, a := newReader(t)
		event := strings.Replace(a.put(shirt(1), document), `"specversion"`,
			`"subject":"itm_9","specversion"`, 1)
		a.bodies["/internal/v1/observations/obs_1/raw"] = document
		b.observe(strings.ReplaceAll(event, "canonical", "raw"))
		if got := b.engine.Known("con_1"); got != want || b.results() != "read " {
			t.Errorf("%s: %d known, want %d; %s", document, got, want, b.results())
		}
	}
}

func TestSnapshotIsReadAgainLater(t *testing.T) {
	t.Parallel()
	b, a := newReader(t)
	event := a.put(shirt(1), shirtDocument)
	a.down = 1
	b.observe(event)
	deadline, tick := time.After(20*time.Second), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for b.results() != "unreachable read " {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("results %q", b.results())
		}
	}
}

func TestRecommendsWhatItRead(t *testing.T) {
	t.Parallel()
	b, a := newReader(t)
	ask := func(connection, item string) string {
		t.Helper()
		s, answer, err := b.post("/v1/recommendations", "right",
			`{"connection_id":"`+connection+`","decision_id":"dec_1","item_id":"`+item+`","limit":2}`)
		if err != nil {
			t.Fatal(err)
		}
		if s != http.StatusOK {
			return fmt.Sprint(s)
		}
		var got struct {
			Items []Item `json:"items"`
		}
		if err := json.Unmarshal([]byte(answer), &got); err != nil {
			t.Fatal(err)
		}
		names := ""
		for _, i := range got.Items {
			names += i.ItemID + "/" + i.VariantID + " "
		}
		return names
	}
	other := func(n, category string) string {
		o := Observed{ObservationID: "obs_o" + n, ConnectionID: "con_1", Entity: "product",
			ExternalID: "q" + n, Revision: 5, Operation: "upsert"}
		return a.put(o, `{"item":{"item_id":"itm_`+n+`","status":"active",`+
			`"taxonomy":[{"taxonomy_id":"`+category+`"}]},"variants":[]}`)
	}
	deleted := shirt(3)
	deleted.Operation = "delete"
	if got := ask("con_1", ""); got != "503" {
		t.Errorf("nothing known: %s", got)
	}
	b.observe(a.put(shirt(2), shirtDocument))
	if got := ask("con_1", ""); got != "itm_1/var_1 " {
		t.Errorf("one known: %s", got)
	}
	if got := ask("con_2", ""); got != "503" {
		t.Errorf("another connection: %s", got)
	}
	b.observe(other("2", "tax_2"), other("3", "tax_1"))
	if got := ask("con_1", "itm_1"); got != "itm_3/ itm_2/ " {
		t.Errorf("beside itm_1: %s", got)
	}
	b.observe(a.put(deleted, ""), a.put(shirt(1), shirtDocument))
	if got := ask("con_1", "itm_2"); got != "itm_3/ " {
		t.Errorf("after a delete and an old event: %s", got)
	}
	if got, want := b.results(), strings.Repeat("read ", 5); got != want {
		t.Errorf("results %q, want %q", got, want)
	}
}

func TestKeepsWhatItReadBetweenRuns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kept.json")
	b, a := newReader(t)
	if err := b.engine.PersistTo(path); err != nil {
		t.Fatal(err)
	}
	b.observe(a.put(shirt(2), shirtDocument))
	again := newHarness(t)
	if err := again.engine.PersistTo(path); err != nil {
		t.Fatal(err)
	}
	s, answer, err := again.post("/v1/recommendations", "right",
		`{"connection_id":"con_1","decision_id":"dec_1"}`)
	if err != nil || s != 200 || !strings.Contains(answer, `[{"item_id":"itm_1","variant_id":"var_1"}]`) {
		t.Errorf("answer %d %s %v", s, answer, err)
	}
}
