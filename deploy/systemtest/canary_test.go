package systemtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// canary begins every secret of the system tests: tokens of principals and of shops, secrets of apps, what sealed and signed with,
// buyers. The services run at debug level, and nothing that they tell may hold it: logs, figures, jobs, errors. Base64 has it in
// three forms, by where it begins.
const canary = "canary-"

// leaks finds the canary in what must not hold it.
func leaks(text []byte) string {
	for _, form := range []string{canary, "Y2FuYXJ5", "NhbmFye", "jYW5hcn"} {
		if at := bytes.Index(text, []byte(form)); at >= 0 {
			return string(text[max(0, at-200):min(len(text), at+60)])
		}
	}
	return ""
}

// keepsLog reads the whole log of a process that has ended.
func keepsLog(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if leak := leaks(text); err != nil || leak != "" {
		t.Errorf("log %s: %v, or it tells a secret: %q", path, err, leak)
	}
}

// keepsMetrics reads the figures of a process. One that stands still or has died tells nothing.
func keepsMetrics(t *testing.T, n *node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.admin+"/metrics", http.NoBody)
	check(t, err)
	res, err := wire.Do(r)
	if err != nil {
		return
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if leak := leaks(text); err == nil && leak != "" {
		t.Errorf("%s: a metric tells a secret: %q", n.Name(), leak)
	}
}

// keepsJobs reads what operators see of control's work.
func (x *topology) keepsJobs() {
	x.t.Helper()
	rows, err := x.pool.Query(context.Background(), `SELECT concat_ws(' ', kind, args::text, errors::text, metadata::text, tags::text) FROM control.river_job
		UNION ALL SELECT to_jsonb(r)::text FROM control.bootstrap_runs r UNION ALL SELECT concat_ws(' ', state, reason, scope) FROM control.installations`)
	if err != nil {
		return // a scenario may have taken its database away
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if leak := leaks([]byte(strings.Join(all, "\n"))); err == nil && leak != "" {
		x.t.Errorf("a job or a run tells a secret: %q", leak)
	}
}

// tattler looks into every error that the tests are answered.
type tattler struct {
	next   http.RoundTripper
	report *tattler // where it is written down; nil: here

	mu    sync.Mutex
	leaks []string
}

// RoundTrip implements http.RoundTripper.
func (w *tattler) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := w.next.RoundTrip(r)
	if err != nil || res.StatusCode < http.StatusBadRequest {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	if leak := leaks(body); leak != "" {
		to := w
		if w.report != nil {
			to = w.report
		}
		to.mu.Lock()
		defer to.mu.Unlock()
		to.leaks = append(to.leaks, fmt.Sprintf("%s %s: %d %s", r.Method, r.URL.Path, res.StatusCode, leak))
	}
	return res, nil
}

func (w *tattler) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.leaks) == 0 {
		return nil
	}
	return fmt.Errorf("errors tell secrets:\n%s", strings.Join(w.leaks, "\n"))
}

// The net has no hole where the canary is encoded.
func TestCanaryIsFound(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x canary-1", "Basic ZGVtby1jYW5hcnktMQ==", "Basic Y2FuYXJ5LTE=", "Basic eGNhbmFyeS0x"} {
		if leaks([]byte(text)) == "" {
			t.Errorf("%q passes", text)
		}
	}
	if leak := leaks([]byte("canaries sing")); leak != "" {
		t.Errorf("%q is no secret", leak)
	}
}
