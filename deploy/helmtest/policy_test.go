//go:build helm

package helmtest

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestReferences checks each set of values: all names that an object refers to exist, and all names are
// unique.
func TestReferences(t *testing.T) {
	t.Parallel()
	for set, values := range valueFiles(t) {
		t.Run(set, func(t *testing.T) {
			r := release{objects: objects(t, render(t, "-f", values))}
			seen := map[string]bool{}
			for _, o := range r.objects {
				switch o.kind() {
				case "Deployment", "Job":
					r.checkReferences(t, o)
				case "Service", "PodDisruptionBudget", "NetworkPolicy":
					r.checkSelector(t, o)
				}
				if o.str("metadata", "namespace") != "shop" && o.component() != "" {
					t.Errorf("%s is in the namespace %q", o, o.str("metadata", "namespace"))
				}
				if seen[o.String()] || len(o.name()) > 63 {
					t.Errorf("%s exists twice, or its name has more than 63 characters", o)
				}
				seen[o.String()] = true
			}
		})
	}
}

// checkReferences checks that the release creates what a pod refers to. Only Secrets may exist before. A
// pre-install hook may only refer to hooks that run before it and to objects that are not part of the
// release.
func (r release) checkReferences(t *testing.T, o object) {
	t.Helper()
	isHook := strings.Contains(o.annotation("helm.sh/hook"), "pre-install")
	created := map[string]object{}
	for _, other := range r.objects {
		created[other.String()] = other
	}
	var names []string
	if account := o.pod().str("serviceAccountName"); account != "" && account != "default" {
		names = append(names, "ServiceAccount "+account)
	}
	for _, raw := range list[map[string]any](o.pod().at("containers")) {
		for _, from := range list[map[string]any](raw["envFrom"]) {
			names = append(names, "ConfigMap "+object(from).str("configMapRef", "name"))
		}
		for _, entry := range list[map[string]any](raw["env"]) {
			name := object(entry).str("valueFrom", "secretKeyRef", "name")
			if name == "" {
				continue
			}
			names = append(names, "Secret "+name)
			data, _ := created["Secret "+name].at("stringData").(map[string]any)
			if _, ok := data[object(entry).str("valueFrom", "secretKeyRef", "key")]; data != nil && !ok {
				t.Errorf("%s: the Secret %s of the release lacks %v", o, name, entry["valueFrom"])
			}
		}
	}
	for _, name := range names {
		target, ours := created[name]
		early := strings.Contains(target.annotation("helm.sh/hook"), "pre-install") &&
			target.annotation("helm.sh/hook-weight") < "0"
		if isHook && ours && !early {
			t.Errorf("%s runs before %s is created", o, name)
		}
		if !isHook && !ours && !strings.HasPrefix(name, "Secret ") {
			t.Errorf("%s refers to %s, which does not exist", o, name)
		}
	}
}

// checkSelector checks that an object selects the pods of exactly one Deployment and of no Job.
func (r release) checkSelector(t *testing.T, o object) {
	t.Helper()
	selector, _ := o.at("spec", "selector").(map[string]any)
	if o.kind() == "NetworkPolicy" {
		selector, _ = o.at("spec", "podSelector", "matchLabels").(map[string]any)
	} else if labels, ok := selector["matchLabels"].(map[string]any); ok {
		selector = labels
	}
	selected := map[string]int{}
	for _, d := range r.objects {
		labels, _ := d.at("spec", "template", "metadata", "labels").(map[string]any)
		matches := len(selector) > 0 && labels != nil
		for k, v := range selector {
			matches = matches && labels[k] == v
		}
		if matches {
			selected[d.kind()]++
		}
	}
	if selected["Deployment"] != 1 || selected["Job"] != 0 {
		t.Errorf("%s selects the pods of %v", o, selected)
	}
}

// TestConfigurationReplacesPods checks that a changed setting replaces the pods of its component only.
func TestConfigurationReplacesPods(t *testing.T) {
	t.Parallel()
	checksums := func(args ...string) map[string]string {
		out := map[string]string{}
		for _, o := range objects(t, render(t,
			append([]string{"-f", valueFiles(t)["minimal"]}, args...)...)) {
			if o.kind() == "Deployment" {
				out[o.component()] = o.str("spec", "template", "metadata", "annotations", "checksum/config")
			}
		}
		return out
	}
	before, after := checksums(), checksums("--set", "edge.config.EDGE_LOG_LEVEL=DEBUG")
	if before["edge"] == "" || before["edge"] == after["edge"] || before["control"] != after["control"] ||
		before["relay"] != after["relay"] {
		t.Errorf("before %v, after %v", before, after)
	}
}

// TestListedImages compares the images in the chart's metadata with those that it runs.
func TestListedImages(t *testing.T) {
	t.Parallel()
	var chart struct{ Annotations map[string]string }
	read(t, filepath.Join(root(t), "helm/storefront/Chart.yaml"), &chart)
	var images []struct{ Image string }
	if err := yaml.Unmarshal([]byte(chart.Annotations["artifacthub.io/images"]), &images); err != nil {
		t.Fatal(err)
	}
	listed, used := map[string]bool{}, map[string]bool{}
	for _, i := range images {
		listed[i.Image] = true
	}
	for _, o := range objects(t, render(t, "-f", valueFiles(t)["minimal"])) {
		for _, raw := range list[map[string]any](o.pod().at("containers")) {
			used[object(raw).str("image")] = true
		}
	}
	if !maps.Equal(listed, used) {
		t.Errorf("listed %v, used %v", listed, used)
	}
}
