package app

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

type result struct {
	Index         int
	Status        string
	ObservationID string `json:"observation_id"`
	EntityID      string `json:"entity_id"`
	Reason        string
}

const canaryOrder = `{"entity":"order","external_id":"canary-order","revision":1,"document":{"status":"canary-status","currency":"EUR",` +
	`"total":{"amount":"7","currency":"EUR"},"lines":[],"placed_at":"2026-01-02T03:04:05Z","buyer":{"name":"canary-buyer","canary-member":"x"}},"raw":{"canary-raw":1}}`

const someProduct = `{"entity":"product","external_id":"p","revision":1,"document":{"item":{"title":{"en":"T"},"status":"active"},"variants":[{"external_id":"v"}]}}`

func (b *bundle) deliver(con, token string, elements ...string) []result {
	b.t.Helper()
	a := b.call("POST", "/connections/"+con+"/observations", token,
		`{"observations":[`+strings.Join(elements, ",")+`]}`)
	if a.status != 200 || a.header.Get("Content-Type") != "application/json" {
		b.t.Fatalf("%d %s", a.status, a.body)
	}
	var got struct{ Results []result }
	a.decode(b.t, &got)
	return got.Results
}

func TestDeliverAndReadBack(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	con, token := b.connect("store-1")
	results := b.deliver(con, token, someProduct, canaryOrder,
		`{"entity":"order","external_id":"canary-bad","revision":1,"document":{"canary-member":1}}`,
		someProduct)
	want := []string{"accepted", "accepted", "quarantined", "duplicate"}
	for i, r := range results {
		if r.Index != i || r.Status != want[i] || r.ObservationID == "" || r.EntityID == "" {
			t.Errorf("%+v", r)
		}
	}
	for i, doc := range []string{`"refresh_revision":1`,
		`"buyer":{"canary-member":"x","name":"canary-buyer"}`} {
		a := b.call("GET", "/observations/"+results[i].ObservationID+"/canonical", engineToken, "")
		var got struct {
			ContentDigest string          `json:"content_digest"`
			Document      json.RawMessage `json:"document"`
		}
		a.decode(t, &got)
		sum := sha256.Sum256([]byte(a.body))
		digest := "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
		if a.status != 200 || got.ContentDigest != catalog.Digest(got.Document) ||
			!bytes.Contains(got.Document, []byte(doc)) ||
			a.header.Get("Content-Digest") != digest || a.header.Get("ETag") == "" ||
			a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%d %v %s", a.status, a.header, a.body)
		}
		if again := b.call("GET", "/observations/"+results[i].ObservationID+"/canonical", engineToken,
			""); again.body != a.body {
			t.Error("a snapshot changed")
		}
		if raw := b.call("GET", "/observations/"+results[i].ObservationID+"/raw", engineToken,
			""); raw.status != 404 {
			t.Errorf("the raw body of a custom observation: %d", raw.status)
		}
	}
	for _, path := range []string{results[2].ObservationID, "obs_none", ident.Random(ident.Observation)} {
		if a := b.call("GET", "/observations/"+path+"/canonical", engineToken, ""); a.status != 404 {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	b.eventually("the product is in Redis", func() bool {
		got := b.redis.Get(t.Context(), b.cfg.RedisPrefix+"item:"+con+":"+results[0].EntityID).Val()
		return strings.HasPrefix(got, "1\n{\"item\"")
	})
	quarantine := b.call("GET", "/connections/"+con+"/quarantine", connectorToken, "")
	if quarantine.status != 200 || !strings.Contains(quarantine.body, results[2].ObservationID) ||
		strings.Contains(quarantine.body, "canary-member") {
		t.Errorf("quarantine %s", quarantine.body)
	}
	replay := b.call("POST", "/connections/"+con+"/quarantine/"+results[2].ObservationID+"/replay",
		connectorToken, "")
	if replay.status != 202 || !strings.Contains(replay.body, `"status":"quarantined"`) {
		t.Errorf("replay %d %s", replay.status, replay.body)
	}
	// Logs and metrics contain nothing of the order.
	_, metrics := b.admin(b.app, "/metrics")
	for place, text := range map[string]string{"log": b.log.String(), "metrics": metrics} {
		if strings.Contains(text, "canary") || strings.Contains(text, token) {
			t.Errorf("the %s holds a canary", place)
		}
	}
	if !strings.Contains(metrics,
		`storefront_control_observations_total{entity="order",status="accepted"} 1`) {
		t.Error("observations are not counted")
	}
	args := ""
	b.scan(&args, `SELECT coalesce(string_agg(args::text || coalesce(errors::text, ''), ''), '') FROM control.river_job`)
	if strings.Contains(args, "canary") {
		t.Error("a job holds a canary")
	}
}

func TestTheDoorOfOperation4(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	con, token := b.connect("store-1")
	other, otherToken := b.connect("store-2")
	body := `{"observations":[` + someProduct + `]}`
	f := func(method, path, token, body string, status int, code string) {
		t.Helper()
		a := b.call(method, path, token, body)
		var got map[string]string
		a.decode(t, &got)
		if a.status != status || got["code"] != code || got["detail"] == "" || len(got) != 2 ||
			a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %.60s: %d %s, want %d %s", method, path, a.status, a.body, status, code)
		}
		if (a.header.Get("WWW-Authenticate") == "Bearer") != (status == 401) ||
			(a.header.Get("Allow") == "POST") != (status == 405) {
			t.Errorf("%s %s: %v", method, path, a.header)
		}
	}
	path := "/connections/" + con + "/observations"
	for _, stranger := range []string{"", otherToken, connectorToken, backendToken, engineToken, token + "x",
		"sct_" + strings.Repeat("x", 43)} {
		f("POST", path, stranger, body, 401, "unauthorized")
	}
	for _, no := range []string{"con_none", "str_1", "con_", "%2f", "con_1%2f", "..", "x y"} {
		f("POST", "/connections/"+strings.ReplaceAll(no, " ", "%20")+"/observations", token, body,
			401, "unauthorized")
	}
	f("GET", path, token, "", 405, "method_not_allowed")
	f("POST", path, token, "", 400, "invalid_request")
	f("POST", path, token, `{"observations":{}}`, 400, "invalid_request")
	f("POST", path, token, `{"observations":[`+strings.Repeat(someProduct+",", 500)+someProduct+`]}`, 413,
		"observation_batch_limit_exceeded")
	f("POST", path, token, `{"observations":["`+strings.Repeat("x", 32<<20)+`"]}`, 413, "payload_too_large")
	var stored int
	if b.scan(&stored, `SELECT count(*) FROM control.observations`); stored != 0 {
		t.Errorf("%d observations are stored", stored)
	}
	if got := b.deliver(other, otherToken, strings.Repeat(someProduct+",",
		499)+someProduct); len(got) != 500 || got[0].Status != "accepted" || got[499].Status != "duplicate" {
		t.Errorf("500: %d results", len(got))
	}
	var rotated struct{ Token string }
	b.call("POST", "/connections/"+con+"/token", connectorToken, "").decode(t, &rotated)
	f("POST", path, token, body, 401, "unauthorized")
	b.deliver(con, rotated.Token, someProduct)
}

func TestWithoutPepperOperation4IsNotThere(t *testing.T) {
	t.Parallel()
	b := newBundle(t, func(c *Config) { c.ConnectorPepper = "" })
	if a := b.call("POST", "/connections/con_1/observations", "sct_"+strings.Repeat("x", 43),
		"{}"); a.status != 404 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestGreatBodies delivers the largest bodies under the smallest budget, with and without a length. Their
// elements are no observations, so that little work follows.
func TestGreatBodies(t *testing.T) {
	t.Parallel()
	b := newBundle(t, func(c *Config) { c.BodyBudget = minBodyBudget })
	con, token := b.connect("store-1")
	element := `"` + strings.Repeat("x", 1<<20-200) + `"`
	body := `{"observations":[` + strings.Repeat(element+",", 31) + someProduct + `]}`
	for _, length := range []int64{int64(len(body)), -1} {
		r, err := http.NewRequestWithContext(t.Context(), "POST",
			"http://"+b.app.Addr()+"/internal/v1/connections/"+con+"/observations", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = length
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if n := strings.Count(string(answer), `"rejected"`); err != nil || res.StatusCode != 200 || n != 31 {
			t.Errorf("length %d: %s, %d are rejected, %v", length, res.Status, n, err)
		}
	}
}
