//go:build helm

package helmtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"storefront.internal/deploy/local/project"
)

// object is a rendered manifest.
type object map[string]any

func (o object) str(path ...string) string {
	s, _ := o.at(path...).(string)
	return s
}

// at returns the value at a path of maps, or nil.
func (o object) at(path ...string) any {
	var v any = map[string]any(o)
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

func (o object) kind() string   { return o.str("kind") }
func (o object) name() string   { return o.str("metadata", "name") }
func (o object) String() string { return o.kind() + " " + o.name() }

// component returns the part of the chart that the object belongs to.
func (o object) component() string {
	return o.str("metadata", "labels", "app.kubernetes.io/component")
}

func (o object) annotation(name string) string { return o.str("metadata", "annotations", name) }

func list[T any](v any) []T {
	raw, _ := v.([]any)
	out := make([]T, 0, len(raw))
	for _, e := range raw {
		if t, ok := e.(T); ok {
			out = append(out, t)
		}
	}
	return out
}

func root(t *testing.T) string {
	t.Helper()
	p, err := project.Find()
	if err != nil {
		t.Fatal(err)
	}
	return p.Root
}

// tool returns the path of a program that `make helm-test` installs.
func tool(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(root(t), "bin", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: use make helm-test", err)
	}
	return path
}

// kubeVersion is explicit because a helm that was built by `go install` assumes Kubernetes 1.20.
const kubeVersion = "1.36.0"

// render returns the text of a release `sf` in the namespace `shop`.
func render(t *testing.T, args ...string) string {
	t.Helper()
	return renderAs(t, "sf", "shop", args...)
}

func renderAs(t *testing.T, release, namespace string, args ...string) string {
	t.Helper()
	args = append([]string{"template", release, "helm/storefront", "-n", namespace, "--kube-version",
		kubeVersion}, args...)
	cmd := exec.CommandContext(t.Context(), tool(t, "helm"), args...)
	cmd.Dir = root(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("helm %v: %v\n%s", args, err, &stderr)
	}
	return string(out)
}

func objects(t *testing.T, text string) []object {
	t.Helper()
	var all []object
	for _, doc := range strings.Split("\n"+text, "\n---") {
		var o object
		if err := yaml.UnmarshalStrict([]byte(doc), &o); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if len(o) > 0 {
			all = append(all, o)
		}
	}
	return all
}

// valueFiles returns the paths of the sets of values by name.
func valueFiles(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root(t), "helm/storefront/ci/*-values.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no values to render: %v", err)
	}
	files := make(map[string]string, len(paths))
	for _, path := range paths {
		files[strings.TrimSuffix(filepath.Base(path), "-values.yaml")] = path
	}
	return files
}
