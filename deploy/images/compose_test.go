package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/compose-spec/compose-go/v2/types"
)

const composeFile = "../compose.yaml"

// compose reads compose.yaml with the library of Docker Compose.
func compose(t *testing.T, env map[string]string) (*types.Project, error) {
	t.Helper()
	var pairs []string
	for k, v := range env {
		pairs = append(pairs, k+"="+v)
	}
	options, err := cli.NewProjectOptions([]string{composeFile}, cli.WithEnv(pairs),
		cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(context.Background())
}

// secrets returns the output of the script, which calls a fake docker.
func secrets(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	script, err := os.ReadFile("../compose/secrets")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "deploy/compose"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"deploy/compose/secrets": string(script),
		"docker":                 "#!/bin/sh\nif [ $1 = build ]; then echo sha256:1; else echo \"$@\"; fi\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var made [2]map[string]string
	for i := range made {
		cmd := exec.Command(filepath.Join(dir, "deploy/compose/secrets"))
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if made[i], err = dotenv.Read(filepath.Join(dir, "deploy/compose/.env")); err != nil {
			t.Fatal(err)
		}
	}
	if !maps.Equal(made[0], made[1]) {
		t.Error("a second run changed the secrets")
	}
	keyset, err := os.ReadFile(filepath.Join(dir, "deploy/compose/keyset.json"))
	if err != nil || !bytes.Contains(keyset, []byte("run --rm sha256:1 keyset new")) {
		t.Errorf("the keyset is %q (%v)", keyset, err)
	}
	return made[0]
}

func TestComposeServices(t *testing.T) {
	p, err := compose(t, secrets(t))
	if err != nil {
		t.Fatal(err)
	}
	prefixes := map[string]string{"edge": "EDGE_", "control": "CONTROL_", "engine-relay": "RELAY_"}
	for name, s := range p.Services {
		if !regexp.MustCompile(`^[a-z0-9/-]+:[A-Za-z0-9][\w.-]*$`).MatchString(s.Image) ||
			strings.HasSuffix(s.Image, ":latest") {
			t.Errorf("%s: image %q has no version", name, s.Image)
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is published on %q", name, port.Published, port.HostIP)
			}
		}
		if s.Build == nil {
			continue
		}
		module := *s.Build.Args["MODULE"]
		folder := module
		if p := s.Build.Args["PACKAGE"]; p != nil {
			folder = filepath.Join(module, *p)
		}
		if _, err := os.Stat(filepath.Join(s.Build.Context, folder, "main.go")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !s.ReadOnly || len(s.CapDrop) != 1 || s.CapDrop[0] != "ALL" || len(s.SecurityOpt) != 1 {
			t.Errorf("%s is not restricted", name)
		}
		if prefixes[module] == "" {
			continue // the demo engine has no reference
		}
		known, required := variables(t, module, prefixes[module])
		for v := range s.Environment {
			if strings.HasPrefix(v, prefixes[module]) != known[v] || !known[v] {
				t.Errorf("%s: %s has no setting %s", name, module, v)
			}
		}
		for _, v := range required {
			if value := s.Environment[v]; len(s.Command) == 0 && (value == nil || *value == "") {
				t.Errorf("%s: %s is required", name, v)
			}
		}
	}
	for name := range prefixes {
		if s := p.Services[name]; s.HealthCheck == nil || !slices.Equal(s.HealthCheck.Test,
			[]string{"CMD", "/service", "health"}) {
			t.Errorf("%s has no health check, so up --wait does not wait for it", name)
		}
		if _, there := p.Services[name]; !there {
			t.Errorf("no service %s", name)
		}
	}
}

func TestComposeOrder(t *testing.T) {
	p, err := compose(t, secrets(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range p.Services {
		for on, d := range s.DependsOn {
			other, there := p.Services[on]
			switch {
			case !there:
				t.Errorf("%s waits for %s, which does not exist", name, on)
			case d.Condition == types.ServiceConditionHealthy && other.HealthCheck == nil:
				t.Errorf("%s waits for the health of %s, which has no health check", name, on)
			case d.Condition == types.ServiceConditionCompletedSuccessfully && other.Restart != "no":
				t.Errorf("%s waits for the end of %s, which is restarted", name, on)
			}
		}
	}
}

func TestComposeMounts(t *testing.T) {
	p, err := compose(t, secrets(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range p.Services {
		for _, v := range s.Volumes {
			switch {
			case v.Type == types.VolumeTypeVolume:
				if _, there := p.Volumes[v.Source]; !there {
					t.Errorf("%s: no volume %s", name, v.Source)
				}
			case strings.HasSuffix(v.Source, "/deploy/compose/keyset.json"): // written by the script
			default:
				if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
					t.Errorf("%s: %s: %v, read-only %v", name, v.Source, err, v.ReadOnly)
				}
			}
		}
	}
}

// TestComposeRequiresSecrets checks that no password may be missing.
func TestComposeRequiresSecrets(t *testing.T) {
	all := secrets(t)
	for name := range all {
		some := maps.Clone(all)
		delete(some, name)
		if _, err := compose(t, some); err == nil ||
			!strings.Contains(err.Error(), "run deploy/compose/secrets") {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// TestComposeKeepsClassicBuckets checks that Prometheus scrapes the classic buckets, which rules and
// dashboards use, together with native histograms.
func TestComposeKeepsClassicBuckets(t *testing.T) {
	text, err := os.ReadFile("../compose/prometheus.yaml")
	if err != nil {
		t.Fatal(err)
	}
	jobs := bytes.Count(text, []byte("  - job_name: "))
	if kept := bytes.Count(text, []byte("\n    always_scrape_classic_histograms: true\n")); kept != jobs ||
		jobs != 3 {
		t.Errorf("%d of %d jobs keep classic buckets", kept, jobs)
	}
}

// variables returns the settings with a prefix in a module's CONFIG.md, and the required ones.
func variables(t *testing.T, module, prefix string) (known map[string]bool, required []string) {
	t.Helper()
	text, err := os.ReadFile("../../" + module + "/CONFIG.md")
	if err != nil {
		t.Fatal(err)
	}
	known = map[string]bool{}
	rows := regexp.MustCompile("(?m)^\\| `(" + prefix + "[A-Z_]+)` \\|[^|]*\\|[^|]*\\| (yes|no) \\|")
	for _, row := range rows.FindAllStringSubmatch(string(text), -1) {
		known[row[1]] = true
		if row[2] == "yes" {
			required = append(required, row[1])
		}
	}
	if len(known) < 10 {
		t.Fatalf("CONFIG.md of %s names %d variables", module, len(known))
	}
	return known, required
}
