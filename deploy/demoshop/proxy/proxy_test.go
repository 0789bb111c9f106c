package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/demoshop/trail"
)

const path = "/v1/connections/con_a/storefront-signals?key=spk_a"

// post sends one signal through the proxy.
func post(t *testing.T, base string) (status int, header http.Header, err error) {
	t.Helper()
	r, err := http.Post(base+path, "text/plain", strings.NewReader(`{"signals":[{"signal_id":"sig_a","type":"click"}]}`))
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = r.Body.Close() }()
	_, err = io.ReadAll(r.Body)
	return r.StatusCode, r.Header, err
}

// Each fault breaks what it says, and the trail tells it.
func TestFaults(t *testing.T) {
	t.Parallel()
	reached := 0
	edge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RequestURI() == path {
			reached++
		}
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"results":[{"index":0,"signal_id":"sig_a","status":"accepted"}]}`)
	}))
	defer edge.Close()
	base, err := url.Parse(edge.URL)
	if err != nil {
		t.Fatal(err)
	}
	tr := trail.New()
	p := New(base, tr)
	site := httptest.NewServer(p)
	defer site.Close()

	p.Break(Off, 0)
	if _, _, err := post(t, site.URL); err == nil || reached != 0 {
		t.Errorf("network off: error %v, the edge was reached %d times", err, reached)
	}
	p.Break(Unavailable, 10*time.Second)
	status, header, err := post(t, site.URL)
	if err != nil || status != http.StatusServiceUnavailable || header.Get("Retry-After") != "10" ||
		header.Get("Access-Control-Allow-Origin") != "*" || reached != 0 {
		t.Errorf("unavailable: %d %v %v, the edge was reached %d times", status, header, err, reached)
	}
	p.now = func() time.Time { return time.Now().Add(11 * time.Second) }
	if f, _ := p.Fault(); f != None {
		t.Errorf("fault %q after its end", f)
	}
	p.Break(CutAnswer, 0)
	if _, _, err := post(t, site.URL); err == nil || reached != 1 {
		t.Errorf("cut answer: error %v, the edge was reached %d times", err, reached)
	}
	if status, _, err := post(t, site.URL); err != nil || status != http.StatusAccepted {
		t.Errorf("after it: %d %v", status, err)
	}
	if err := p.SendTwice(t.Context()); err != nil || reached != 3 {
		t.Errorf("sent twice: %v, the edge was reached %d times", err, reached)
	}
	rows, _, _, _ := tr.Since(0)
	var got []string
	for _, a := range rows[0].Attempts {
		got = append(got, a.Outcome)
	}
	if want := "no answer 503 answer cut accepted accepted"; strings.Join(got, " ") != want {
		t.Errorf("outcomes %v, want %s", got, want)
	}
}
