package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// shopServer is a store at Tiendanube without products. While it fails it echoes the credential that it
// received.
type shopServer struct {
	mu    sync.Mutex
	fails int
	hooks []map[string]any
}

func (s *shopServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if s.fails > 0 {
		s.fails--
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, `{"error":%q}`, r.Header.Get("Authentication"))
		return
	}
	switch {
	case !strings.HasSuffix(r.URL.Path, "/webhooks"):
		fmt.Fprint(w, `[]`)
	case r.Method == http.MethodPost:
		hook := map[string]any{}
		if err := json.NewDecoder(r.Body).Decode(&hook); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		hook["id"] = len(s.hooks) + 1
		s.hooks = append(s.hooks, hook)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(hook)
	default:
		_ = json.NewEncoder(w).Encode(s.hooks)
	}
}

func (s *shopServer) urls() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hooks {
		out = append(out, fmt.Sprint(h["url"]))
	}
	return out
}

func TestAnInstallationGoesOnByItself(t *testing.T) {
	t.Parallel()
	shops := &shopServer{fails: 1}
	server := httptest.NewServer(shops)
	t.Cleanup(server.Close)
	b := newBundle(t, func(c *Config) { c.ProviderURLs = []string{"tiendanube=" + server.URL + "/{store}"} })
	got, _ := b.install("101", "app-1", accessToken, "")
	state := func() (s string) {
		var v struct {
			Installation struct{ State, Reason string }
		}
		b.call("GET", "/connections/"+got.ConnectionID, connectorToken, "").decode(t, &v)
		return v.Installation.State + " " + v.Installation.Reason
	}
	b.eventually("the failure is shown", func() bool { return state() == "opened server_error" })
	b.eventually("the saga completes", func() bool { return state() == "completed " })
	urls := shops.urls()
	if len(urls) != 13 || !strings.HasPrefix(urls[0], "https://hooks.test/in/tiendanube/whe_") {
		t.Errorf("%d subscriptions: %v", len(urls), urls)
	}
	if n := b.text(`SELECT count(*)::text FROM control.bootstrap_runs`); n != "1" {
		t.Errorf("%s loads", n)
	}
	if again, status := b.install("101", "app-1", accessToken+"-2", ""); status != 200 ||
		again.ConnectionID != got.ConnectionID {
		t.Errorf("again: %d", status)
	}
	b.eventually("the saga completes again", func() bool { return state() == "completed " })
	if n := len(shops.urls()); n != 13 {
		t.Errorf("%d subscriptions after installing again", n)
	}
	jobs := b.text(`SELECT string_agg(to_jsonb(j)::text, ' ') FROM control.river_job j`)
	_, metrics := b.admin(b.app, "/metrics")
	for name, text := range map[string]string{"jobs": jobs, "log": b.log.String(), "metrics": metrics,
		"runs": b.text(`SELECT string_agg(to_jsonb(r)::text, ' ') FROM control.bootstrap_runs r`),
		"view": b.call("GET", "/connections/"+got.ConnectionID, connectorToken, "").body} {
		if strings.Contains(text, "canary") {
			t.Errorf("a canary is in the %s: %s", name, text)
		}
	}
	if !strings.Contains(jobs, "installation_saga") || !strings.Contains(metrics,
		`storefront_control_installation_steps_total{provider="tiendanube",state="completed"}`) {
		t.Error("no job or no metric tells of the saga")
	}
}
