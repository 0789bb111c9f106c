//go:build helm

package helmtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
)

// timeout is generous, because the machine may be busy.
const timeout = 3 * time.Minute

// prefixes are the prefixes of the components' settings.
var prefixes = map[string]string{"edge": "EDGE_", "control": "CONTROL_", "relay": "RELAY_",
	"receiver": "RECEIVER_"}

// node is a running binary with the environment of a container.
type node struct {
	container
	*process.Process
	listen, admin string
	log           string
}

// start runs a binary with the arguments and environment of the rendered container, except for the port
// numbers.
func (c container) start(t *testing.T, binary string) *node {
	t.Helper()
	n := &node{container: c, listen: address(t), admin: address(t),
		log: filepath.Join(t.TempDir(), c.name+".log")}
	prefix := prefixes[c.name]
	c.move(t, prefix+"ADMIN_LISTEN", "ops", n.admin)
	if c.name != "relay" {
		c.move(t, prefix+"LISTEN", "http", n.listen)
	}
	log, err := os.Create(n.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	n.Process, err = process.Start(process.Spec{Name: c.name, Path: binary, Args: c.args, Env: c.environ(),
		Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.end(t) })
	if err := stack.Ready(t.Context(), n.Process, n.admin, timeout); err != nil {
		t.Fatalf("%s: %v\n%s", c.name, err, n.tail())
	}
	return n
}

// end stops the process as the kubelet does, within the pod's grace period.
func (n *node) end(t *testing.T) {
	if !n.Running() {
		return
	}
	if err := n.Stop(syscall.SIGTERM, time.Duration(n.grace)*time.Second); err != nil {
		t.Error(err)
	}
	if err := n.Err(); err != nil {
		t.Errorf("%s ended with %v\n%s", n.name, err, n.tail())
	}
}

func (n *node) text() string {
	text, err := os.ReadFile(n.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (n *node) tail() string {
	text := n.text()
	return text[max(0, len(text)-3000):]
}

// url returns the URL of a path at a named port of the container.
func (n *node) url(port, path string) string {
	at := map[string]string{"ops": n.admin, "http": n.listen}[port]
	return "http://" + at + path
}

func address(t *testing.T) string {
	t.Helper()
	port, err := project.ClaimPort()
	if err != nil {
		t.Fatal(err)
	}
	return project.Loopback(port)
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func binary(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(root(t), "bin", map[string]string{"edge": "edge", "control": "control",
		"relay": "engine-relay", "migrate": "control", "receiver": "control"}[name])
}

// TestBinariesRunWithTheChart starts the real binaries with the rendered environments, after the migration
// Job has run as an owner who is not a superuser. All probes succeed, the published routes are served, and
// the test of the chart passes.
func TestBinariesRunWithTheChart(t *testing.T) {
	t.Parallel()
	s := newStores(t)
	r := s.release(t, s.externalValues(t))
	s.migrate(t, r)
	nodes := map[string]*node{}
	for _, name := range []string{"control", "relay", "edge", "receiver"} {
		c := r.container(t, "Deployment", "sf-storefront-"+name)
		if name == "receiver" {
			if !strings.HasPrefix(c.env["RECEIVER_CONTROL_URL"], "http://sf-storefront-control.") {
				t.Errorf("the receiver asks %s", c.env["RECEIVER_CONTROL_URL"])
			}
			c.env["RECEIVER_CONTROL_URL"] = "http://" + nodes["control"].listen
		}
		n := c.start(t, binary(t, name))
		nodes[name] = n
		if len(n.probes) != 3 {
			t.Errorf("%s has probes %v", name, n.probes)
		}
		for probe, at := range n.probes {
			port, path, _ := strings.Cut(at, "/")
			if status, body := get(t, n.url(port, "/"+path)); status != http.StatusOK || port != "ops" {
				t.Errorf("%s: %s probe at %s: %d %s", name, probe, at, status, body)
			}
		}
		limit, err := strconv.ParseInt(n.env["GOMEMLIMIT"], 10, 64)
		if headroom := fmt.Sprintf(`"bytes":%d`, limit-limit/10); err != nil ||
			!strings.Contains(n.text(), headroom) {
			t.Errorf("%s does not use nine tenths of its memory (%v): %s is not in\n%s", name, err, headroom,
				n.text())
		}
		if status, body := get(t, n.url("ops", "/metrics")); status != http.StatusOK ||
			!strings.Contains(body, "go_goroutines") {
			t.Errorf("%s: metrics: %d", name, status)
		}
	}
	checkFreshSeries(t, nodes)
	publicRoutes(t, r, nodes["edge"])
	webhookRoute(t, nodes["receiver"])
	s.smoke(t, r, nodes)
}

// publicRoutes calls the routes that the Ingress and the HTTPRoute publish.
func publicRoutes(t *testing.T, r release, edge *node) {
	t.Helper()
	if status, body := get(t, edge.url("http", "/healthz")); status != http.StatusOK {
		t.Errorf("/healthz: %d %s", status, body)
	}
	if status, body := get(t, edge.url("http", "/v1/nothing")); status != http.StatusNotFound ||
		!strings.Contains(body, `"type":"`+edge.env["EDGE_ERRORS_BASE"]) {
		t.Errorf("/v1/nothing: %d %s", status, body)
	}
	for _, path := range []string{"/metrics", "/readyz", "/internal/v1/connections"} {
		if status, _ := get(t, edge.url("http", path)); status != http.StatusNotFound {
			t.Errorf("the public port answers %d for %s", status, path)
		}
	}
	for _, o := range r.objects {
		if o.kind() == "Service" && !strings.HasSuffix(o.name(), "-ops") {
			for _, p := range list[map[string]any](o.at("spec", "ports")) {
				if p["targetPort"] != "http" {
					t.Errorf("Service %s has the target port %v", o.name(), p["targetPort"])
				}
			}
		}
	}
}

// webhookRoute delivers webhooks to the receiver, whose token control must accept: it answers 401 to a wrong
// signature, and the receiver 404 to what it does not know.
func webhookRoute(t *testing.T, receiver *node) {
	t.Helper()
	for path, want := range map[string]int{"/in/shopify/whe_none": 404, "/in/" + client.ConnectorProvider +
		"/whe_none": 401, "/internal/v1/webhooks/" + client.ConnectorProvider + "/whe_none": 404} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, receiver.url("http", path),
			strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Linkedstore-Hmac-Sha256", "00")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, res.StatusCode, want)
		}
	}
	taken := `storefront_receiver_webhooks_total{outcome="refused",provider="` + client.ConnectorProvider + `"} 1`
	if _, text := get(t, receiver.url("ops", "/metrics")); !strings.Contains(text, taken) {
		t.Errorf("control was not asked: %s is not among the metrics", taken)
	}
}

// smoke runs the script of `helm test` with the shell and curl of this machine, without a key and with one.
func (s *stores) smoke(t *testing.T, r release, nodes map[string]*node) {
	t.Helper()
	job := r.find(t, "Job", "sf-storefront-test").pod()
	raw := object(list[map[string]any](job.at("containers"))[0])
	command, args := list[string](raw.at("command")), list[string](raw.at("args"))
	if strings.Contains(args[0], "$$") || regexp.MustCompile(`\$\([A-Z_]+\)`).MatchString(args[0]) {
		t.Error("Kubernetes would replace parts of the script")
	}
	env := r.container(t, "Job", "sf-storefront-test").env
	env["BASE_URL"] = nodes["edge"].url("http", "")
	run := func(extra ...string) string {
		cmd := exec.CommandContext(t.Context(), command[0], append(command[1:], args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		for k, v := range env {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		cmd.Env = append(cmd.Env, extra...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("helm test: %v\n%s\n%s", err, out, nodes["edge"].tail())
		}
		return string(out)
	}
	if out := run(); !strings.Contains(out, "refusal: ") {
		t.Errorf("without a key: %s", out)
	}
	api := client.Internal{BaseURL: nodes["control"].url("http", ""), ConnectorToken: connectorToken,
		BackendToken: backendToken}
	connection, err := api.CreateConnection(t.Context(), "helmtest")
	if err != nil {
		t.Fatal(err)
	}
	key, err := api.IssueKey(t.Context(), connection.ConnectionID)
	if err != nil {
		t.Fatal(err)
	}
	s.wait(t, "the key is accepted", func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			nodes["edge"].url("http", "/v1/connections/"+connection.ConnectionID+"/items/itm_none"), nil)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+key.Secret)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode == http.StatusUnauthorized || res.StatusCode >= 500 {
			return fmt.Errorf("status %d", res.StatusCode)
		}
		return nil
	})
	if out := run("CONNECTION_ID="+connection.ConnectionID,
		"STOREFRONT_KEY="+key.Secret); !strings.Contains(out, `"duplicate"`) ||
		!strings.Contains(out, "passed") {
		t.Errorf("with a key: %s", out)
	}
}

// TestBinariesRunWithTrialValues starts all services with the values of a trial, which include all secrets.
func TestBinariesRunWithTrialValues(t *testing.T) {
	t.Parallel()
	s := newStores(t)
	r := s.release(t, s.trialValues(t))
	s.migrate(t, r)
	for _, name := range []string{"control", "relay", "edge"} {
		r.container(t, "Deployment", "sf-storefront-"+name).start(t, binary(t, name))
	}
}

// TestSettingsAreKnown checks that the services know all rendered settings, and that the chart can set all
// secrets.
func TestSettingsAreKnown(t *testing.T) {
	t.Parallel()
	row := regexp.MustCompile("(?m)^\\| `([A-Z]+_)([A-Z0-9_]+)` \\| ([^|]+) \\|")
	for set, values := range valueFiles(t) {
		r := release{objects: objects(t, render(t, "-f", values))}
		for name, reference := range map[string]string{"edge": "edge", "control": "control",
			"relay": "engine-relay", "receiver": "control"} {
			if name == "receiver" && set != "full" {
				continue // it is off
			}
			text, err := os.ReadFile(filepath.Join(root(t), reference, "CONFIG.md"))
			if err != nil {
				t.Fatal(err)
			}
			kind := map[string]string{}
			for _, m := range row.FindAllStringSubmatch(string(text), -1) {
				if m[1] == prefixes[name] {
					kind[m[1]+m[2]] = m[3]
				}
			}
			given := r.variables(t, name)
			for variable, secret := range given {
				if !strings.HasPrefix(variable, prefixes[name]) {
					continue
				}
				if kind[variable] == "" {
					t.Errorf("%s: %s does not know %s", set, name, variable)
				}
				if url := strings.HasSuffix(variable,
					"_DATABASE_URL"); (kind[variable] == "secret") != secret && !url {
					t.Errorf("%s: %s of %s comes from a Secret: %v", set, variable, name, secret)
				}
			}
			for variable, is := range kind {
				if _, ok := given[variable]; set == "full" && is == "secret" && !ok {
					t.Errorf("no value of the chart sets %s", variable)
				}
			}
		}
	}
}

// variables returns the variables of a component, and whether each comes from a Secret.
func (r release) variables(t *testing.T, component string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, o := range r.objects {
		if o.component() != component {
			continue
		}
		switch o.kind() {
		case "ConfigMap":
			data, _ := o.at("data").(map[string]any)
			for k := range data {
				out[k] = false
			}
		case "Deployment":
			first := object(list[map[string]any](o.pod().at("containers"))[0])
			for _, entry := range list[map[string]any](first.at("env")) {
				out[object(entry).str("name")] = object(entry).str("valueFrom", "secretKeyRef", "key") != ""
			}
		}
	}
	return out
}

func (s *stores) wait(t *testing.T, what string, ask func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		}
	}
}
