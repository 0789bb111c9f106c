package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"storefront.internal/shared/ident"
)

// refresh does what control does: commit, and then push or not.
func (e *edge) refresh(item ident.ItemID, revision int64, push bool) {
	e.t.Helper()
	body := fmt.Sprintf(`{"refresh_revision":%d,"pad":%q}`, revision, strings.Repeat("x", 3000))
	e.exec(`INSERT INTO control.aggregates (connection_id, item_id, refresh_revision, document, body, sellable) VALUES ('con_1', $1, $2, $3, $3, true)
		ON CONFLICT (connection_id, item_id) DO UPDATE SET refresh_revision = $2, body = $3, refreshed_at = now()`, item, revision, []byte(body))
	if push {
		if err := e.redis.Set(e.t.Context(), e.cfg.RedisPrefix+"item:con_1:"+string(item),
			fmt.Sprintf("%d\n%s", revision, body), time.Hour).Err(); err != nil {
			e.t.Fatal(err)
		}
		e.redis.Publish(e.t.Context(), e.cfg.RedisPrefix+"items:changed",
			fmt.Sprintf("con_1 %s %d", item, revision))
	}
}

// item reads an item and returns the status and its refresh_revision.
func (e *edge) item(secret string, item ident.ItemID) (status int, revision int64, err error) {
	req, err := http.NewRequestWithContext(context.Background(), "GET", "http://"+e.app.PublicAddr()+
		"/v1/catalog/items/"+string(item), nil)
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, 0, err
	}
	var body struct {
		Revision int64 `json:"refresh_revision"`
	}
	return resp.StatusCode, body.Revision, json.Unmarshal(raw, &body)
}

func (e *edge) wantItem(secret string, item ident.ItemID, status int, revision int64) {
	e.t.Helper()
	if s, r, err := e.item(secret, item); err != nil || s != status || r != revision {
		e.t.Fatalf("%s: %d, revision %d, %v; want %d, %d\n%s", item, s, r, err, status, revision, e.log)
	}
}

// readable runs an edge without rate limits that matter.
func readable(t *testing.T, ttl time.Duration) *edge {
	t.Helper()
	e := prepare(t)
	e.cfg.ItemTTL, e.cfg.LogSample, e.cfg.RatePerKey, e.cfg.RatePerAddress, e.cfg.RateBurst = ttl, 0, 1e6,
		1e6, 1_000_000
	return e.run()
}

func TestItemsAreReadAndChange(t *testing.T) {
	t.Parallel()
	e := readable(t, time.Minute) // so that only the hint can bring a change
	secret := e.issue()
	e.within(2*time.Second, "a new key is good", func() bool { return e.lets(secret) == 200 })
	e.refresh("itm_1", 1, false)
	e.wantItem(secret, "itm_1", 200, 1)
	e.wantItem(secret, "itm_2", 404, 0)
	e.within(5*time.Second, "the edge listens for hints", func() bool {
		return e.redis.PubSubNumSub(t.Context(), e.cfg.RedisPrefix+"items:changed").Val()[e.cfg.RedisPrefix+
			"items:changed"] == 1
	})
	for revision := int64(2); revision < 12; revision++ {
		e.refresh("itm_1", revision, true)
		e.within(2*time.Second, "the change is read", func() bool {
			_, got, _ := e.item(secret, "itm_1")
			return got == revision
		})
	}
	e.exec(`INSERT INTO control.aggregates (connection_id, item_id, refresh_revision, document, body, ` +
		`sellable) VALUES ('con_2', 'itm_3', 1, '{}', '{}', true)`)
	e.wantItem(secret, "itm_3", 404, 0)
}

// Items are read and changed while Redis is cut off and comes back: no read fails, and no edge answers an
// older revision after a newer one.
func TestRedisCutOffUnderReads(t *testing.T) {
	t.Parallel()
	e := readable(t, time.Second)
	secret := e.issue()
	e.within(2*time.Second, "a new key is good", func() bool { return e.lets(secret) == 200 })
	const count = 5
	name := func(n int) ident.ItemID { return ident.ItemID(fmt.Sprint("itm_", n)) }
	for n := range count {
		e.refresh(name(n), 1, true)
	}
	var stop atomic.Bool
	var reads atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var last [count]int64
			for n := 0; !stop.Load(); n = (n + 1) % count {
				status, revision, err := e.item(secret, name(n))
				if err != nil || status != 200 || revision < last[n] {
					t.Errorf("%d, revision %d after %d, %v", status, revision, last[n], err)
					return
				}
				last[n] = revision
				reads.Add(1)
			}
		})
	}
	revision := int64(1)
	for round := range 4 {
		e.cache.set(round%2 == 0)
		for range 5 {
			revision++
			for n := range count {
				e.refresh(name(n), revision, n%2 == 0)
			}
			at := reads.Load()
			e.within(10*time.Second, "reads go on", func() bool { return reads.Load() > at+100 })
		}
	}
	e.within(10*time.Second, "the last change is read, with no hint and a Redis that is behind", func() bool {
		_, got, _ := e.item(secret, name(0))
		return got == revision
	})
	stop.Store(true)
	wg.Wait()
}

func TestPostgreSQLCutOffUnderReads(t *testing.T) {
	t.Parallel()
	e := readable(t, time.Second)
	secret := e.issue()
	e.within(2*time.Second, "a new key is good", func() bool { return e.lets(secret) == 200 })
	e.refresh("itm_1", 1, true)
	e.wantItem(secret, "itm_1", 200, 1)
	e.postgres.set(true)
	e.refresh("itm_2", 5, true)
	e.wantItem(secret, "itm_2", 200, 5)
	e.wantItem(secret, "itm_3", 503, 0)
	e.cache.set(true)
	end := time.Now().Add(3 * time.Second) // past the TTL of the copy
	e.within(10*time.Second, "the copy serves past its life", func() bool {
		e.wantItem(secret, "itm_1", 200, 1)
		return time.Now().After(end)
	})
	e.postgres.set(false)
	e.refresh("itm_1", 2, false)
	e.within(10*time.Second, "PostgreSQL is asked again", func() bool {
		_, got, _ := e.item(secret, "itm_1")
		return got == 2
	})
}

// Without an engine a recommendation is the connection's sellable items; of the engine's items, those of the
// connection stay.
func TestRecommendationsAreOfTheCatalog(t *testing.T) {
	t.Parallel()
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w,
			`{"items":[{"item_id":"itm_other"},{"item_id":"itm_2"},{"item_id":"itm_never"}]}`)
	}))
	defer engine.Close()
	for source, url := range map[string]string{"fallback": "", "engine": engine.URL} {
		e := prepare(t)
		e.cfg.EngineURL, e.cfg.EngineToken, e.cfg.EngineDeadline = url, "t", 5*time.Second
		e.run()
		secret := e.issue()
		e.refresh("itm_1", 1, false)
		e.refresh("itm_2", 1, false)
		e.exec(`INSERT INTO control.aggregates (connection_id, item_id, refresh_revision, document, body, ` +
			`sellable) VALUES ('con_2', 'itm_other', 1, '{}', '{}', true)`)
		e.within(10*time.Second, "the recommendation is of the catalog", func() bool {
			status, answer := e.post(secret, "recommendations", `{"placement":"home"}`)
			if status != 200 || answer["source"] != source {
				t.Fatalf("%d %v", status, answer)
			}
			want := map[string]string{
				"fallback": "[map[item_id:itm_2 position:0] map[item_id:itm_1 position:1]]",
				"engine":   "[map[item_id:itm_2 position:0]]",
			}
			return fmt.Sprint(answer["items"]) == want[source]
		})
		e.end()
	}
}
