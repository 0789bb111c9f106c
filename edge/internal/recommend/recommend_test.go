package recommend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"storefront.internal/shared/breaker"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

type minter struct{}

func (minter) Mint(c ident.ConnectionID, _ time.Time) ident.DecisionID {
	return ident.DecisionID("dec_of_" + c)
}

type recorder struct{ got []*signal.Decision }

func (r *recorder) Record(d *signal.Decision) { r.got = append(r.got, d) }

// engine is a fake that answers, fails, or waits for the context.
type engine struct {
	asked []*EngineRequest
	do    func(ctx context.Context) (EngineResponse, error)
}

func (e *engine) Recommend(ctx context.Context, q *EngineRequest) (EngineResponse, error) {
	e.asked = append(e.asked, q)
	return e.do(ctx)
}

type fallback struct {
	picks []Item
	err   error
}

func (f *fallback) Items(context.Context, ident.ConnectionID, int) ([]Item, error) {
	return f.picks, f.err
}

func newService(c Config) (*Service, *recorder, *strings.Builder) {
	rec, log := &recorder{}, &strings.Builder{}
	c.Minter, c.Recorder, c.Metrics, c.Now = minter{}, rec, NewMetrics(prometheus.NewRegistry()), time.Now
	c.Logger = slog.New(slog.NewJSONHandler(log, nil))
	return New(c), rec, log
}

func ask(t *testing.T, s *Service, body string) (*Answer, error) {
	t.Helper()
	return s.Recommend(t.Context(), Request{ConnectionID: "con_1", StoreID: "str_1", Body: []byte(body),
		Traceparent: "trace"})
}

const full = `{"placement":"home-page_1","item_id":"itm_9","visitor":{"visitor_id":"vis_a","session_id":"ses_b"},
	"client":{"timezone":"Europe/Madrid","extra":1},"cart":[{"item_id":"itm_1","quantity":2},{"item_id":"itm_2","variant_id":"var_2","quantity":1}],
	"limit":2,"unknown":[{}],"Placement":"x"}`

func TestEngineAnswers(t *testing.T) {
	t.Parallel()
	e := &engine{do: func(context.Context) (EngineResponse, error) {
		return EngineResponse{Items: []Item{{ItemID: "itm_1"}, {ItemID: "itm_2", VariantID: "var_2"},
			{ItemID: "itm_3"}}, EngineIDs: json.RawMessage(`{"r":"1"}`)}, nil
	}}
	s, rec, _ := newService(Config{Engine: e})
	a, err := ask(t, s, full)
	if err != nil {
		t.Fatal(err)
	}
	items := []signal.DecisionItem{{Position: 0, ItemID: "itm_1"},
		{Position: 1, ItemID: "itm_2", VariantID: "var_2"}}
	if a.DecisionID != "dec_of_con_1" || a.Placement != "home-page_1" || a.Source != "engine" ||
		!slices.Equal(a.Items, items) || time.Since(a.ServedAt) > time.Minute {
		t.Errorf("%+v", a)
	}
	question, err := json.Marshal(e.asked[0])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"connection_id":"con_1","store_id":"str_1","decision_id":"dec_of_con_1",` +
		`"placement":"home-page_1","item_id":"itm_9",` +
		`"visitor":{"visitor_id":"vis_a","session_id":"ses_b"},"client":{"timezone":"Europe/Madrid"},` +
		`"cart":[{"item_id":"itm_1","quantity":2},{"item_id":"itm_2","variant_id":"var_2","quantity":1}],` +
		`"limit":2}`
	if string(question) != want || e.asked[0].Traceparent != "trace" {
		t.Errorf("asked %s\nwant  %s", question, want)
	}
	d := rec.got[0]
	if len(rec.got) != 1 || d.DecisionID != a.DecisionID || d.ConnectionID != "con_1" ||
		d.StoreID != "str_1" || d.Source != "engine" ||
		string(d.EngineIDs) != `{"r":"1"}` || d.Visitor.VisitorID != "vis_a" ||
		!slices.Equal(d.Items, items) || !d.ServedAt.Equal(a.ServedAt) {
		t.Errorf("recorded %+v", d)
	}
}

func TestFallbackAnswers(t *testing.T) {
	t.Parallel()
	items := []Item{{ItemID: "itm_7"}}
	failing := &engine{do: func(context.Context) (EngineResponse, error) {
		return EngineResponse{},
			errors.New("down")
	}}
	for name, tc := range map[string]struct {
		config Config
		items  int
	}{
		"no engine":                 {Config{Fallback: &fallback{picks: items}}, 1},
		"engine fails":              {Config{Engine: failing, Fallback: &fallback{picks: items}}, 1},
		"nothing to fall back on":   {Config{Engine: failing}, 0},
		"fallback has nothing":      {Config{Fallback: &fallback{}}, 0},
		"fallback fails":            {Config{Fallback: &fallback{err: errors.New("x")}}, 0},
		"fallback has more than 10": {Config{Fallback: &fallback{picks: slices.Repeat(items, 11)}}, 10},
	} {
		s, rec, _ := newService(tc.config)
		a, err := ask(t, s, `{"placement":"p"}`)
		if err != nil || a.Source != "fallback" || len(a.Items) != tc.items || len(rec.got) != 1 ||
			rec.got[0].EngineIDs != nil {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
		if tc.items == 0 && !strings.HasSuffix(string(a.AppendJSON(nil)), `"items":[]}`) {
			t.Errorf("%s: %s", name, a.AppendJSON(nil))
		}
	}
}

func TestLateEngine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &engine{do: func(ctx context.Context) (EngineResponse,
			error) {
			<-ctx.Done()
			return EngineResponse{}, ctx.Err()
		}}
		s, _, _ := newService(Config{Engine: e})
		began := time.Now()
		a, err := ask(t, s, `{"placement":"p"}`)
		if err != nil || a.Source != "fallback" || time.Since(began) != 150*time.Millisecond {
			t.Errorf("%+v, %v after %s", a, err, time.Since(began))
		}
		if n := testutil.ToFloat64(s.cfg.Metrics.engineRequests.WithLabelValues("late")); n != 1 {
			t.Errorf("%v counted late", n)
		}
	})
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		down := true
		e := &engine{do: func(context.Context) (EngineResponse, error) {
			if down {
				return EngineResponse{}, errors.New("down")
			}
			return EngineResponse{}, nil
		}}
		s, _, _ := newService(Config{Engine: e})
		serve := func(n int) (asked int) {
			before := len(e.asked)
			for range n {
				if _, err := ask(t, s, `{"placement":"p"}`); err != nil {
					t.Fatal(err)
				}
			}
			return len(e.asked) - before
		}
		if n := serve(50); n != engineFailures {
			t.Fatalf("asked %d times, want %d", n, engineFailures)
		}
		policy := openTime()
		for opened := policy.Min; opened <= policy.Max; opened *= 2 { // at least half of it is not random
			time.Sleep(opened/2 - time.Millisecond)
			if n := serve(3); n != 0 {
				t.Fatalf("asked %d times within the open time of %s", n, opened)
			}
			time.Sleep(opened/2 + time.Millisecond)
			if n := serve(3); n != 1 {
				t.Fatalf("asked %d times after the open time of %s, want one probe", n, opened)
			}
		}
		down = false
		time.Sleep(5 * time.Second) // however long it was down
		if n := serve(10); n != 10 || s.breaker.State() != breaker.Closed {
			t.Fatalf("asked %d of 10 times after the engine came back", n)
		}
	})
}

func TestMalformedRequests(t *testing.T) {
	t.Parallel()
	s, rec, _ := newService(Config{})
	many := strings.TrimSuffix(strings.Repeat(`{"item_id":"itm_1","quantity":1},`, 101), ",")
	for body, pointers := range map[string]string{
		``: "", `[]`: "", `"x"`: "", `{"placement":"p"} x`: "",
		`{"placement":"p","placement":"p"}`: "/placement", `{"placement":"p","a":{"b":1,"b":2}}`: "/a/b",
		"{\"placement\":\"\xff\"}": "",
		`{"placement":"p","a":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}`: "*",
		`{}`: "/placement", `{"placement":null}`: "/placement", `{"placement":7}`: "/placement",
		`{"placement":""}`: "/placement", `{"placement":"A"}`: "/placement",
		`{"placement":"` + strings.Repeat("a", 65) + `"}`: "/placement", `{"PLACEMENT":"p"}`: "/placement",
		`{"placement":"p","item_id":"x"}`: "/item_id", `{"placement":"p","item_id":7}`: "/item_id",
		`{"placement":"p","item_id":"itm_\u0000"}`: "/item_id",
		`{"placement":"p","limit":0}`:              "/limit", `{"placement":"p","limit":51}`: "/limit",
		`{"placement":"p","limit":1.0}`: "/limit", `{"placement":"p","limit":1e1}`: "/limit",
		`{"placement":"p","limit":"5"}`: "/limit", `{"placement":"p","limit":99999999999999999999}`: "/limit",
		`{"placement":"p","cart":{}}`: "/cart", `{"placement":"p","cart":[` + many + `]}`: "/cart",
		`{"placement":"p","cart":[1]}`: "/cart/0", `{"placement":"p","cart":[null]}`: "/cart/0",
		`{"placement":"p","cart":[{"item_id":"itm_1","quantity":1},` +
			`{}]}`: "/cart/1/item_id /cart/1/quantity",
		`{"placement":"p","cart":[{"item_id":"itm_1","variant_id":"x",` +
			`"quantity":0}]}`: "/cart/0/variant_id /cart/0/quantity",
		`{"placement":"P","item_id":"x","limit":0,"cart":[{"item_id":"itm_1",` +
			`"quantity":1000001}]}`: "/placement /item_id /limit /cart/0/quantity",
	} {
		_, err := ask(t, s, body)
		f := fault.From(err)
		if f.Code != fault.InvalidRequest || len(f.Fields) == 0 {
			t.Errorf("%.80s: %v", body, err)
			continue
		}
		var got []string
		for _, field := range f.Fields {
			if field.Code == "" || field.Detail == "" {
				t.Errorf("%.80s: %+v", body, field)
			}
			got = append(got, field.Pointer)
		}
		if pointers != "*" && strings.Join(got, " ") != pointers {
			t.Errorf("%.80s: pointers %q, want %q", body, got, pointers)
		}
	}
	if len(rec.got) != 0 {
		t.Errorf("%d Decisions recorded", len(rec.got))
	}
}

func TestErrorsAreBounded(t *testing.T) {
	t.Parallel()
	s, _, _ := newService(Config{})
	_, err := ask(t, s, `{"placement":"p","cart":[`+strings.TrimSuffix(strings.Repeat(`{},`, 100), ",")+`]}`)
	if n := len(fault.From(err).Fields); n != maxErrors {
		t.Errorf("%d errors, want %d", n, maxErrors)
	}
}

func TestMalformedShopperIsDiscarded(t *testing.T) {
	t.Parallel()
	for body, field := range map[string]string{
		`{"placement":"p","visitor":{"visitor_id":"canary@example.com"}}`: "visitor",
		`{"placement":"p","visitor":{"visitor_id":"vis_5551234567"}}`:     "visitor",
		`{"placement":"p","visitor":7}`:                                   "visitor",
		`{"placement":"p","client":{"timezone":"canary/Nowhere"}}`:        "client",
		`{"placement":"p","client":[]}`:                                   "client",
	} {
		e := &engine{do: func(context.Context) (EngineResponse, error) { return EngineResponse{}, nil }}
		s, rec, log := newService(Config{Engine: e})
		if _, err := ask(t, s, body); err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if e.asked[0].Visitor != nil || len(e.asked[0].Client) != 0 || rec.got[0].Visitor != nil {
			t.Errorf("%s: asked %+v", body, e.asked[0])
		}
		if out := log.String(); !strings.Contains(out, fmt.Sprintf(`"field":%q`, field)) ||
			strings.Contains(out, "canary") || strings.Contains(out, "555") {
			t.Errorf("%s: log %s", body, out)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte(`{"placement":"p","cart":[{"item_id":"itm_1","quantity":1}]}`))
	s, _, _ := newService(Config{})
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := s.decode(body)
		if err != nil {
			if !fault.Is(err, fault.InvalidRequest) {
				t.Fatal(err)
			}
			return
		}
		if !placementForm(in.placement) || in.placement == "" || in.limit < 1 || in.limit > MaxItems ||
			len(in.cart) > maxCart || !json.Valid(body) {
			t.Fatalf("%+v of %q", in, body)
		}
	})
}
