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

	"storefront.internal/deploy/stack"
)

// canary is the prefix of every secret of the system tests: tokens of principals and of shops, secrets of
// apps, keys, personal data of buyers. The services run at debug level, and none of their logs, metrics, jobs
// and error responses may contain it.
const canary = "canary-"

// leaks finds the canary in a text that must not contain it. Base64 writes it in three ways, depending on
// where it begins.
func leaks(text []byte) string {
	for _, form := range []string{canary, "Y2FuYXJ5", "NhbmFye", "jYW5hcn"} {
		if at := bytes.Index(text, []byte(form)); at >= 0 {
			return string(text[max(0, at-200):min(len(text), at+60)])
		}
	}
	return ""
}

// checkLog looks for secrets in the log of a process that has ended.
func checkLog(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if leak := leaks(text); err != nil || leak != "" {
		t.Errorf("log %s: %v, or it shows a secret: %q", path, err, leak)
	}
}

// checkMetrics looks for secrets in the metrics of a process, if it answers.
func checkMetrics(t *testing.T, n *stack.Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.Admin+"/metrics", http.NoBody)
	check(t, err)
	res, err := httpClient.Do(r)
	if err != nil {
		return
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if leak := leaks(text); err == nil && leak != "" {
		t.Errorf("%s: a metric shows a secret: %q", n.Name, leak)
	}
}

// checkJobs looks for secrets in what operators see of control's work.
func (x *deployment) checkJobs() {
	x.t.Helper()
	rows, err := x.pool.Query(context.Background(), `
		SELECT concat_ws(' ', kind, args::text, errors::text, metadata::text, tags::text)
		FROM control.river_job
		UNION ALL SELECT to_jsonb(r)::text FROM control.bootstrap_runs r
		UNION ALL SELECT concat_ws(' ', state, reason, scope) FROM control.installations`)
	if err != nil {
		return // the scenario may have stopped its database
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if leak := leaks([]byte(strings.Join(all, "\n"))); err == nil && leak != "" {
		x.t.Errorf("a job or a run shows a secret: %q", leak)
	}
}

// leakDetector looks for secrets in every error response that the tests get.
type leakDetector struct {
	next   http.RoundTripper
	report *leakDetector // collects the leaks; nil: this one

	mu    sync.Mutex
	leaks []string
}

// RoundTrip implements http.RoundTripper.
func (w *leakDetector) RoundTrip(r *http.Request) (*http.Response, error) {
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

func (w *leakDetector) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.leaks) == 0 {
		return nil
	}
	return fmt.Errorf("error responses show secrets:\n%s", strings.Join(w.leaks, "\n"))
}

// The canary is found in its encoded forms too.
func TestCanaryIsFound(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x canary-1", "Basic ZGVtby1jYW5hcnktMQ==", "Basic Y2FuYXJ5LTE=",
		"Basic eGNhbmFyeS0x"} {
		if leaks([]byte(text)) == "" {
			t.Errorf("%q passes", text)
		}
	}
	if leak := leaks([]byte("canaries sing")); leak != "" {
		t.Errorf("%q is no secret", leak)
	}
}
