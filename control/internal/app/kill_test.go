package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/control/internal/jobs"
	"storefront.internal/control/internal/seal"
	"storefront.internal/shared/crashpoint"
	"storefront.internal/shared/testkit"
)

// chaosBinary builds control with its crash points.
func chaosBinary(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "control")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "chaos", "-o", binary, "../..").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// killable is a control of its own process, which dies at a crash point.
type killable struct {
	t        *testing.T
	binary   string
	url      string // of the internal surface
	environ  []string
	db       *pgxpool.Pool
	log      bytes.Buffer
	provider *shopServer
}

func newKillable(t *testing.T, binary string) *killable {
	t.Helper()
	superURL := testkit.PostgresWith(t, river, jobs.Migrate)
	redis, prefix := testkit.Redis(t)
	keyset, err := seal.NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	k := &killable{t: t, binary: binary, db: testkit.Pool(t, superURL), provider: &shopServer{}}
	server := httptest.NewServer(k.provider)
	t.Cleanup(server.Close)
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	k.url = "http://" + address + "/internal/v1"
	k.environ = []string{
		"CONTROL_DATABASE_URL=" + testkit.PostgresAs(t, superURL, "storefront_control"), "CONTROL_REDIS_ADDRS=" + redis,
		"CONTROL_REDIS_PREFIX=" + prefix, "CONTROL_LISTEN=" + address, "CONTROL_ADMIN_LISTEN=127.0.0.1:0", "CONTROL_LOG_LEVEL=DEBUG",
		"CONTROL_ERRORS_BASE=https://errors.test/", "CONTROL_KEYSET=" + string(keyset), "CONTROL_CONNECTOR_TOKENS=tiendanube:" + connectorToken,
		"CONTROL_APP_SECRETS=tiendanube/app-1:" + appSecret, "CONTROL_WEBHOOK_URL=https://hooks.test", "CONTROL_PRODUCTION=false",
		"CONTROL_PROVIDER_NETWORKS=127.0.0.1/32", "CONTROL_PROVIDER_URLS=tiendanube=" + server.URL + "/{store}",
	}
	return k
}

// start runs control with a variable more and returns what waits for its end.
func (k *killable) start(more string) (cmd *exec.Cmd, ended chan error) {
	k.t.Helper()
	cmd = exec.CommandContext(k.t.Context(), k.binary)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(k.environ, more), &k.log, &k.log
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	ended = make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return cmd, ended
}

// ask makes a request; an answer that does not come is "".
func (k *killable) ask(method, path, body string) string {
	ctx, cancel := context.WithTimeout(k.t.Context(), 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, k.url+path, strings.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+connectorToken)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	raw, _ := io.ReadAll(res.Body)
	return string(raw)
}

func (k *killable) until(what string, done func() bool) {
	k.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(3 * time.Minute)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			k.t.Fatalf("never happened: %s", what)
		}
	}
}

// TestASagaIsKilledAtEveryCall kills control itself before and after each of its calls to the provider. A saga comes back
// when the lease of the dead has lapsed, so this takes its time: it runs under make soak.
func TestASagaIsKilledAtEveryCall(t *testing.T) {
	if os.Getenv("SOAK") != "1" {
		t.Skip("takes minutes: runs with SOAK=1")
	}
	t.Parallel()
	binary := chaosBinary(t)
	for _, point := range []string{crashpoint.SagaCalling, crashpoint.SagaCalled} {
		for n := 1; n <= 14; n++ { // one list and thirteen topics
			t.Run(fmt.Sprint(point, " ", n), func(t *testing.T) {
				t.Parallel()
				k := newKillable(t, binary)
				_, ended := k.start(fmt.Sprintf("CRASHPOINT=%s:%d", point, n))
				body := `{"provider":"tiendanube","provider_app_id":"app-1","external_store_id":"7","access_token":"` + accessToken + `"}`
				k.until("installed", func() bool { return strings.Contains(k.ask("POST", "/installations", body), `"created":true`) })
				k.until("killed", func() bool {
					select {
					case err := <-ended:
						if err == nil || !strings.Contains(err.Error(), "killed") {
							t.Fatalf("ended with %v", err)
						}
						return true
					default:
						return false
					}
				})
				cmd, ended := k.start("CRASHPOINT=")
				var con string
				if err := k.db.QueryRow(t.Context(), `SELECT connection_id FROM control.connections`).Scan(&con); err != nil {
					t.Fatal(err)
				}
				k.until("completed", func() bool { return strings.Contains(k.ask("GET", "/connections/"+con, ""), `"state":"completed"`) })
				_ = cmd.Process.Signal(os.Interrupt)
				if err := <-ended; err != nil {
					t.Errorf("the second control ended with %v", err)
				}
				topics := map[string]int{}
				for _, url := range k.provider.urls() {
					topics[url]++
				}
				if len(topics) != 13 || len(k.provider.urls()) != 13 {
					t.Errorf("%d subscriptions to %d addresses", len(k.provider.urls()), len(topics))
				}
				if strings.Contains(k.log.String(), "canary") {
					t.Errorf("a canary is in the log: %s", k.log.String())
				}
			})
		}
	}
}
