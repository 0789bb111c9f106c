package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"storefront.internal/helm/e2e/program"
)

// helm runs helm in a namespace and returns its output.
func (h *environment) helm(t *testing.T, namespace string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("../../bin/helm", append(args, "--namespace="+namespace)...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+h.kubeconfig,
		"HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	t.Logf("helm %s: %.1f s", args[0], time.Since(began).Seconds())
	return string(out), nil
}

// release returns the arguments of an install or an upgrade with images of a tag.
func (h *environment) release(verb, tag string, more ...string) []string {
	return append([]string{verb, "shop", h.chart, "--values=testdata/values.yaml", "--wait", "--timeout=5m",
		"--set=edge.image.tag=" + tag, "--set=control.image.tag=" + tag, "--set=relay.image.tag=" +
			tag}, more...)
}

// namespace creates a namespace that admits only restricted pods, with the given Secrets.
func (h *environment) namespace(t *testing.T, secrets ...string) string {
	t.Helper()
	name := "e2e-" + randomHex(4)
	err := h.api.create("/api/v1/namespaces",
		object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{
			"name": name, "labels": object{"pod-security.kubernetes.io/enforce": "restricted",
				"pod-security.kubernetes.io/enforce-version": "latest"},
		}})
	if err != nil {
		t.Fatal(err)
	}
	contents := map[string]object{
		"database":       {"edge-password": "x", "control-password": "x", "relay-password": "x"},
		"database-owner": {"url": h.database},
		"engine":         {"engine-token": "x"},
		"storefront-secrets": {"decision-keys": "x", "keyset": "x", "connector-tokens": "x",
			"backend-tokens": "x", "engine-tokens": "x", "connector-pepper": "x"},
	}
	for _, s := range secrets {
		if err := h.api.create("/api/v1/namespaces/"+name+"/secrets", object{
			"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": s}, "stringData": contents[s],
		}); err != nil {
			t.Fatal(err)
		}
	}
	// Pods are rejected until the controller has created the default account.
	if err := program.Wait(time.Minute,
		func() error {
			return h.api.get("/api/v1/namespaces/"+name+"/serviceaccounts/default",
				nil)
		}); err != nil {
		t.Fatal(err)
	}
	return name
}

var allSecrets = []string{"database", "database-owner", "engine", "storefront-secrets"}

// kinds maps the resources of the release to their API groups.
var kinds = map[string]string{
	"deployments": "apps/v1", "services": "v1", "configmaps": "v1", "secrets": "v1", "serviceaccounts": "v1",
	"jobs":                 "batch/v1",
	"poddisruptionbudgets": "policy/v1", "networkpolicies": "networking.k8s.io/v1",
	"ingresses":                "networking.k8s.io/v1",
	"horizontalpodautoscalers": "autoscaling/v2", "servicemonitors": "monitoring.coreos.com/v1",
	"prometheusrules": "monitoring.coreos.com/v1", "scaledobjects": "keda.sh/v1alpha1",
	"httproutes": "gateway.networking.k8s.io/v1",
	"pods":       "v1",
}

// objects returns the release's objects of a resource.
func (h *environment) objects(t *testing.T, namespace, resource string) []object {
	t.Helper()
	root := "/apis/"
	if kinds[resource] == "v1" {
		root = "/api/"
	}
	var found list
	url := root + kinds[resource] + "/namespaces/" + namespace + "/" + resource +
		"?labelSelector=app.kubernetes.io/instance=shop"
	if err := h.api.get(url, &found); err != nil {
		t.Fatalf("%s: %v", resource, err)
	}
	return found.Items
}

// serving checks that each Deployment has all its pods ready with images of the tag.
func (h *environment) serving(t *testing.T, namespace, tag string) {
	t.Helper()
	err := program.Wait(time.Minute, func() error {
		all := h.objects(t, namespace, "deployments")
		if len(all) != 3 {
			return fmt.Errorf("%d Deployments", len(all))
		}
		for _, d := range all {
			want, ready := d.at("spec", "replicas"), d.at("status", "readyReplicas")
			if want != ready || want != d.at("status", "updatedReplicas") {
				return fmt.Errorf("%s: %v ready, %v updated of %v", d.name(), ready,
					d.at("status", "updatedReplicas"), want)
			}
			if image := d.text("spec", "template", "spec", "containers", 0,
				"image"); !strings.HasSuffix(image, ":"+tag) {
				return fmt.Errorf("%s runs %s, not %s", d.name(), image, tag)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// migrated checks that the migration succeeded so many times.
func (h *environment) migrated(t *testing.T, namespace string, times int) {
	t.Helper()
	runs, waiting := h.jobs.of(namespace)
	runs = slices.DeleteFunc(runs, jobRun.isTest)
	if len(runs) != times || waiting != "" {
		t.Fatalf("%d Jobs ran, %d expected; waiting: %s", len(runs), times, waiting)
	}
	for _, r := range runs {
		if r.err != nil || strings.Join(r.args, " ") != "migrate up" {
			t.Errorf("%s %v: %v\n%s", r.job, r.args, r.err, r.out)
		}
	}
}

// untouched checks that the namespace has no objects of a release.
func (h *environment) untouched(t *testing.T, namespace string) {
	t.Helper()
	var secrets list
	if err := h.api.get("/api/v1/namespaces/"+namespace+"/secrets?labelSelector=owner=helm",
		&secrets); err != nil {
		t.Fatal(err)
	}
	if len(secrets.Items) != 0 {
		t.Errorf("a release was recorded: %s", secrets.Items[0].name())
	}
	for resource := range kinds {
		if left := h.objects(t, namespace, resource); len(left) != 0 {
			t.Errorf("%s: %s is there", resource, left[0].name())
		}
	}
}

// rejects posts an object that must be rejected.
func (h *environment) rejects(t *testing.T, path string, o object, status int, word string) {
	t.Helper()
	err := h.api.create(path, o)
	var r *refused
	if !errors.As(err, &r) || r.status != status || !bytes.Contains([]byte(r.text), []byte(word)) {
		t.Errorf("%s: %v, want %d with %q", filepath.Base(path), err, status, word)
	}
	if err == nil {
		_ = h.api.call(http.MethodDelete, path+"/"+o.name(), nil, nil)
	}
}
