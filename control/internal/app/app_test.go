package app

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"storefront.internal/control/internal/seal"
	"storefront.internal/shared/settings"
)

// TestNoCanaryInLogsAndMetrics runs the operations with real secrets, at debug level and without the log's
// redaction.
func TestNoCanaryInLogsAndMetrics(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	con, token := b.connect("canary-store")
	k := b.issue(con)
	b.list(con)
	var rotated struct{ Token string }
	b.call("POST", "/connections/"+con+"/token", connectorToken, "").decode(t, &rotated)
	b.call("POST", "/connections", connectorToken,
		`{"external_store_id":"canary-store","store_profile":{"name":"canary-name"}}`)
	b.call("DELETE", "/connections/"+con+"/api-keys/"+k.ID, backendToken, "")
	b.call("GET", "/brain-interactions/queue", engineToken, "")
	_, metrics := b.admin(b.app, "/metrics")
	for place, text := range map[string]string{"log": b.log.String(), "metrics": metrics} {
		for _, secret := range []string{"canary", k.Secret, token, rotated.Token,
			digestOf(k.Secret), b.keyset} {
			if strings.Contains(text, secret) {
				t.Errorf("the %s holds %q", place, secret)
			}
		}
	}
	if !strings.Contains(metrics,
		`storefront_control_http_request_duration_seconds_count{code="201",operation="issue_key"} 1`) {
		t.Error("the request is not measured")
	}
	var stored string
	b.scan(&stored, `SELECT (SELECT string_agg(k::text, '') FROM control.api_keys k) || (SELECT string_agg(c::text, '') FROM control.connector_tokens c)`)
	for _, secret := range []string{k.Secret, token, rotated.Token} {
		if strings.Contains(stored, secret) {
			t.Error("a secret is stored in clear")
		}
	}
}

func TestConfigurationFaults(t *testing.T) {
	t.Parallel()
	keyset, err := seal.NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	good := []string{
		"CONTROL_DATABASE_URL=postgres://u@h/d", "CONTROL_REDIS_ADDRS=h:1", "CONTROL_ERRORS_BASE=https://e/",
		"CONTROL_KEYSET=" + string(keyset),
		"CONTROL_CONNECTOR_TOKENS=shopify:" + connectorToken,
	}
	f := func(name, want string, environ ...string) {
		t.Helper()
		var cfg Config
		err := settings.Load(Prefix, &cfg, append(slices.Clone(good), environ...))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the fault quotes a secret: %v", name, err)
		}
	}
	file := t.TempDir() + "/keyset"
	if err := os.WriteFile(file, keyset, 0o600); err != nil {
		t.Fatal(err)
	}
	f("good", "")
	f("keyset by file", "", "CONTROL_KEYSET=", "CONTROL_KEYSET_FILE="+file)
	f("no keyset", "CONTROL_KEYSET", "CONTROL_KEYSET=")
	f("two keysets", "CONTROL_KEYSET", "CONTROL_KEYSET_FILE="+file)
	f("no file", "cannot be read", "CONTROL_KEYSET=", "CONTROL_KEYSET_FILE="+file+"x")
	f("bad keyset", "CONTROL_KEYSET", "CONTROL_KEYSET=canary")
	f("no connector", "CONTROL_CONNECTOR_TOKENS", "CONTROL_CONNECTOR_TOKENS=")
	f("short backend token", "at least 32", "CONTROL_BACKEND_TOKENS=canary")
	f("one token twice", "set twice", "CONTROL_ENGINE_TOKENS="+connectorToken)
	f("short pepper", "CONTROL_CONNECTOR_PEPPER", "CONTROL_CONNECTOR_PEPPER=canary")
	f("errors base", "CONTROL_ERRORS_BASE", "CONTROL_ERRORS_BASE=https://e")
	f("errors base", "CONTROL_ERRORS_BASE", "CONTROL_ERRORS_BASE=e/")
	f("app secret", "CONTROL_APP_SECRETS", "CONTROL_APP_SECRETS=tiendanube/1:canary")
	f("weak app secret", "CONTROL_APP_SECRETS_INSECURE", "CONTROL_PRODUCTION=true",
		"CONTROL_APP_SECRETS=tiendanube/1:canary-1")
	f("no webhook URL", "CONTROL_WEBHOOK_URL", "CONTROL_APP_SECRETS=tiendanube/1:canary-1")
	f("webhook URL without TLS", "CONTROL_WEBHOOK_URL", "CONTROL_WEBHOOK_URL=http://hooks.test")
	f("webhook URL with a query", "CONTROL_WEBHOOK_URL", "CONTROL_WEBHOOK_URL=https://hooks.test/?x")
	f("provider URLs in production", "CONTROL_PRODUCTION",
		"CONTROL_PROVIDER_URLS=tiendanube=http://127.0.0.1/{store}")
	f("networks in production", "CONTROL_PRODUCTION", "CONTROL_PROVIDER_NETWORKS=127.0.0.1/32")
	f("provider URL", "CONTROL_PROVIDER_URLS", "CONTROL_PRODUCTION=false",
		"CONTROL_PROVIDER_URLS=vtex=http://127.0.0.1/{store}")
	f("provider URL without store", "CONTROL_PROVIDER_URLS", "CONTROL_PRODUCTION=false",
		"CONTROL_PROVIDER_URLS=shopify=http://127.0.0.1/")
	f("network", "CONTROL_PROVIDER_NETWORKS", "CONTROL_PRODUCTION=false",
		"CONTROL_PROVIDER_NETWORKS=127.0.0.1")
	f("listen", "CONTROL_LISTEN", "CONTROL_LISTEN=8081")
	f("unknown", "CONTROL_BACKEND_TOKEN", "CONTROL_BACKEND_TOKEN=canary")
}

func TestCommands(t *testing.T) {
	t.Parallel()
	input := ""
	run := func(args ...string) (int, string, string) {
		var out, errs strings.Builder
		code := Main(context.Background(), args, nil, strings.NewReader(input), &out, &errs)
		return code, out.String(), errs.String()
	}
	for _, step := range []string{"new", "add", "promote", "retire"} {
		code, out, _ := run("keyset", step)
		if _, err := seal.Parse([]byte(out)); code != exitOK || err != nil ||
			strings.Count(out, "\n") != 1 || out == input {
			t.Errorf("keyset %s: %d, %v, %q", step, code, err, out)
		}
		input = out
	}
	input = "canary"
	if code, _, errs := run("keyset", "add"); code != exitFailed || strings.Contains(errs, "canary") {
		t.Errorf("no keyset: %d %s", code, errs)
	}
	if code, _, errs := run("serve"); code != exitFailed || !strings.Contains(errs, "CONTROL_DATABASE_URL") {
		t.Errorf("serve without configuration: %d %s", code, errs)
	}
	if code, _, errs := run("migrate", "up"); code != exitFailed ||
		!strings.Contains(errs, "CONTROL_DATABASE_URL") {
		t.Errorf("migrate without configuration: %d %s", code, errs)
	}
	if code, _, errs := run("frobnicate"); code != exitUsage || !strings.Contains(errs, "migrate up") {
		t.Errorf("an unknown command: %d %s", code, errs)
	}
	for file, args := range map[string][]string{"CONFIG.md": {"reference", "config"},
		"METRICS.md": {"reference", "metrics"}} {
		_, want, _ := run(args...)
		got, err := os.ReadFile("../../" + file)
		if err != nil || string(got) != want {
			t.Errorf("%s is stale (%v): run make generate", file, err)
		}
	}
}

// Each service of the image asks its own operations port.
func TestHealthCommands(t *testing.T) {
	t.Parallel()
	for args, name := range map[string]string{"health": "CONTROL_ADMIN_LISTEN",
		"receive health": "RECEIVER_ADMIN_LISTEN"} {
		var errs strings.Builder
		environ := []string{"CONTROL_ADMIN_LISTEN=no port", "RECEIVER_ADMIN_LISTEN=no port"}
		code := Main(t.Context(), strings.Fields(args), environ, strings.NewReader(""), io.Discard, &errs)
		if code != exitFailed || !strings.Contains(errs.String(), name) {
			t.Errorf("control %s: %d %q, without %s", args, code, errs.String(), name)
		}
	}
}
