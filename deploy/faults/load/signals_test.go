package load

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"storefront.internal/deploy/faults/history"
)

func shops() (one, two *shop) {
	made := func(connection, id string) *shop {
		return &shop{connection: connection, decisions: []decision{{id, []pick{{"itm_1", "var_1"}, {"itm_2", ""}}}}, products: map[string]*counts{}}
	}
	return made("con_1", "dec_AAAAAAAAAAAAAAAAAAAAAAAAAAAA"), made("con_2", "dec_BBBBBBBBBBBBBBBBBBBBBBBBBBBB")
}

// The history says of every element what was sent, and what is wrong with it on purpose.
func TestBatches(t *testing.T) {
	t.Parallel()
	one, two := shops()
	random := rand.New(rand.NewPCG(1, 2))
	malformed, alien, total, ids := 0, 0, 0, map[string]bool{}
	for range 500 {
		b := compose(one, two, random)
		if len(b.signals) != len(b.sent) || len(b.signals) == 0 || len(b.signals) > 50 {
			t.Fatalf("%d signals, %d records", len(b.signals), len(b.sent))
		}
		for i, s := range b.signals {
			r := b.sent[i]
			total++
			if ids[s.ID] {
				t.Fatalf("id %s twice", s.ID)
			}
			ids[s.ID] = true
			if r.ID != s.ID || r.Type != s.Type || r.Decision != s.Decision || r.Item != s.Item || r.OccurredAt != s.OccurredAt || r.Variant != s.Variant {
				t.Fatalf("sent %+v, recorded %+v", s, r)
			}
			if s.Visitor["visitor_id"] != "vis_"+history.Canary("con_1", s.ID) || r.Canary != history.Canary("con_1", s.ID) {
				t.Fatalf("canary of %+v", s)
			}
			if r.Foreign != (s.Decision != "" && s.Decision != one.decisions[0].id) {
				t.Fatalf("foreign %v: %s", r.Foreign, s.Decision)
			}
			if r.Malformed {
				malformed++
			}
			if r.Foreign {
				alien++
			}
		}
	}
	if malformed*20 < total/2 || alien*20 < total/4 {
		t.Errorf("of %d signals %d are malformed and %d foreign", total, malformed, alien)
	}
}

// A resend has the same elements, perhaps fewer, in whatever order, byte for byte.
func TestResends(t *testing.T) {
	t.Parallel()
	one, two := shops()
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		b := compose(one, two, random)
		before := map[string]string{}
		for i, s := range b.signals {
			text, err := json.Marshal([]any{s, b.sent[i]})
			if err != nil {
				t.Fatal(err)
			}
			before[s.ID] = string(text)
		}
		again := shuffled(b, random)
		if len(again.signals) == 0 || len(again.signals) > len(b.signals) {
			t.Fatalf("%d of %d", len(again.signals), len(b.signals))
		}
		for i, s := range again.signals {
			text, _ := json.Marshal([]any{s, again.sent[i]})
			if before[s.ID] != string(text) {
				t.Fatalf("was %s, is %s", before[s.ID], text)
			}
		}
	}
}

// The body of operation 4 keeps the bytes of `raw`, which the archive is compared with.
func TestExactKeepsRaw(t *testing.T) {
	t.Parallel()
	one, _ := shops()
	random := rand.New(rand.NewPCG(5, 6))
	var all []observation
	for range 50 {
		all = append(all, one.next("product", "p1", random))
	}
	all = append(all, observation{Entity: "product", External: "p1", Revision: 1_000, Operation: "delete", Raw: all[0].Raw})
	var body struct {
		Observations []struct {
			Revision  int64           `json:"revision"`
			Operation string          `json:"operation"`
			Raw       json.RawMessage `json:"raw"`
		} `json:"observations"`
	}
	if err := json.Unmarshal(exact(all), &body); err != nil {
		t.Fatal(err)
	}
	last := int64(0)
	for i, o := range body.Observations {
		if string(o.Raw) != string(all[i].Raw) || o.Revision != all[i].Revision || o.Revision <= last || o.Operation != all[i].Operation {
			t.Fatalf("%d: %+v, want %+v", i, o, all[i])
		}
		last = o.Revision
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]history.Kind{202: history.OK, 304: history.OK, 401: history.Fail, 422: history.Fail, 429: history.Fail, 500: history.Info, 503: history.Info} {
		if got := (reply{status: status}).end(history.Signals); got.Kind != want || got.Status != status {
			t.Errorf("%d: %+v", status, got)
		}
	}
	for status, want := range map[int]bool{202: true, 400: true, 404: true, 429: false, 503: false} {
		if got := (reply{status: status}).final(); got != want {
			t.Errorf("%d is final: %v", status, got)
		}
	}
	if _, err := time.Parse(time.RFC3339, instant(rand.New(rand.NewPCG(1, 1)))); err != nil {
		t.Error(err)
	}
}
