package systemtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/stack"
)

// A binary with a wrong configuration ends at once and names every error: what is missing, what cannot be
// read, what contradicts itself, and an unknown name. It shows no secret.
func TestFaultsOfAConfigurationAreNamedAtOnce(t *testing.T) {
	t.Parallel()
	for binary, prefix := range map[string]string{"edge": "EDGE", "control": "CONTROL",
		"engine-relay": "RELAY"} {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join(shared.plain, binary))
		cmd.Env = append(stack.PlainEnv(os.Environ()), prefix+"_DATABASE_MAX_CONNS=many",
			prefix+"_LOG_LEVL=DEBUG", prefix+"_TRACE_RATIO=7",
			prefix+"_ADMIN_LISTEN=nowhere", prefix+"_DATABASE_PASSWORD="+canary+"typo")
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); err == nil || code <= 0 || ctx.Err() != nil {
			t.Errorf("%s: ended with %d (%v)", binary, code, err)
		}
		for _, want := range []string{"_DATABASE_URL: is required", "_DATABASE_MAX_CONNS: cannot be read",
			"_LOG_LEVL: unknown variable",
			"_DATABASE_PASSWORD: unknown variable", "_TRACE_RATIO: must be", "_ADMIN_LISTEN: must be"} {
			if !strings.Contains(string(out), prefix+want) {
				t.Errorf("%s does not name %s%s:\n%s", binary, prefix, want, out)
			}
		}
		if leak := leaks(out); leak != "" {
			t.Errorf("%s tells a secret: %s", binary, leak)
		}
	}
}

// On the schema of an older release each binary is alive and not ready, and says what to do; it becomes ready
// when the schema is there.
func TestAnOlderSchemaIsNotReady(t *testing.T) {
	t.Parallel()
	x := newDeployment(t)
	nodes := []*stack.Process{x.control, x.edge(), x.relay()}
	newest := x.number("SELECT max(version_id)::int FROM goose_db_version")
	if _, err := x.pool.Exec(t.Context(),
		"UPDATE goose_db_version SET is_applied = false WHERE version_id = $1", newest); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		eventually(t, time.Minute, n.Name+" is not ready",
			func() error { return readiness(n, http.StatusServiceUnavailable, "[-] schema") })
		if err := stack.Probe(t.Context(), "http://"+n.Admin+"/livez"); err != nil {
			t.Errorf("%s: %v", n.Name, err)
		}
	}
	if _, err := x.pool.Exec(t.Context(),
		"UPDATE goose_db_version SET is_applied = true WHERE version_id = $1", newest); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		eventually(t, time.Minute, n.Name+" is ready",
			func() error { return readiness(n, http.StatusOK, "[+] schema ok") })
	}
}

// readiness compares the response of the readiness probe.
func readiness(n *stack.Process, status int, says string) error {
	res, err := http.Get("http://" + n.Admin + "/readyz?verbose")
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && (res.StatusCode != status || !strings.Contains(string(text), says)) {
		err = fmt.Errorf("%d %s", res.StatusCode, text)
	}
	return err
}
