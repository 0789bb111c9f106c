//go:build helm

package helmtest

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// What must hold of every render, whatever the values: pods pass the Pod Security Standard "restricted", references lead
// somewhere, the migration hook leans on nothing that is made after it, and no secret stands outside a Secret.
func TestEveryRender(t *testing.T) {
	t.Parallel()
	for set, values := range valueFiles(t) {
		t.Run(set, func(t *testing.T) {
			r := release{objects: objects(t, render(t, "-f", values))}
			for _, o := range r.objects {
				if o.kind() == "Deployment" || o.kind() == "Job" {
					restricted(t, o)
					r.references(t, o)
				}
				if o.kind() == "Service" || o.kind() == "PodDisruptionBudget" || o.kind() == "NetworkPolicy" {
					r.selects(t, o)
				}
				if o.str("metadata", "namespace") != "shop" && o.component() != "" {
					t.Errorf("%s %s is in the namespace %q", o.kind(), o.name(), o.str("metadata", "namespace"))
				}
			}
			r.unique(t)
		})
	}
}

// restricted checks what the standard asks for, and what our binaries want.
func restricted(t *testing.T, o object) {
	t.Helper()
	pod := o.pod()
	for path, want := range map[string]any{
		"securityContext.runAsNonRoot":        true,
		"securityContext.seccompProfile.type": "RuntimeDefault",
		"automountServiceAccountToken":        false,
		"enableServiceLinks":                  false, // EDGE_SERVICE_HOST would be an unknown variable
	} {
		if got := pod.at(strings.Split(path, ".")...); got != want {
			t.Errorf("%s %s: %s is %v", o.kind(), o.name(), path, got)
		}
	}
	for _, forbidden := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		if pod.at(forbidden) != nil {
			t.Errorf("%s %s has %s", o.kind(), o.name(), forbidden)
		}
	}
	for _, raw := range list[map[string]any](pod.at("containers")) {
		c := object(raw)
		if c.at("securityContext", "allowPrivilegeEscalation") != false || c.at("securityContext", "readOnlyRootFilesystem") != true ||
			fmt.Sprint(c.at("securityContext", "capabilities", "drop")) != "[ALL]" {
			t.Errorf("%s %s: security context %v", o.kind(), o.name(), c.at("securityContext"))
		}
		if c.at("resources", "limits", "memory") == nil || c.at("resources", "limits", "cpu") != nil || c.at("resources", "requests", "cpu") == nil {
			t.Errorf("%s %s: resources %v", o.kind(), o.name(), c.at("resources"))
		}
		if strings.HasSuffix(c.str("image"), ":latest") || !strings.ContainsAny(c.str("image"), ":@") {
			t.Errorf("%s %s: image %s", o.kind(), o.name(), c.str("image"))
		}
		for _, entry := range list[map[string]any](c.at("env")) {
			if value := object(entry).str("value"); strings.Contains(value, "://") && strings.Contains(value, ":example@") {
				t.Errorf("%s %s: %s holds a password", o.kind(), o.name(), entry["name"])
			}
		}
	}
	for _, v := range list[map[string]any](pod.at("volumes")) {
		if v["hostPath"] != nil {
			t.Errorf("%s %s mounts a path of the node", o.kind(), o.name())
		}
	}
}

// references: what a pod names is in the render, or is meant to exist before. A pre-install hook may name only hooks that come
// before it, and what the release does not make.
func (r release) references(t *testing.T, o object) {
	t.Helper()
	hook := strings.Contains(o.annotation("helm.sh/hook"), "pre-install")
	made := map[string]object{}
	for _, other := range r.objects {
		made[other.kind()+" "+other.name()] = other
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
			if name := object(entry).str("valueFrom", "secretKeyRef", "name"); name != "" {
				names = append(names, "Secret "+name)
				data, _ := made["Secret "+name].at("stringData").(map[string]any)
				if _, ok := data[object(entry).str("valueFrom", "secretKeyRef", "key")]; data != nil && !ok {
					t.Errorf("%s %s: the Secret %s that the release makes lacks %v", o.kind(), o.name(), name, entry["valueFrom"])
				}
			}
		}
	}
	for _, name := range names {
		target, ours := made[name]
		early := ours && strings.Contains(target.annotation("helm.sh/hook"), "pre-install") && target.annotation("helm.sh/hook-weight") < "0"
		if hook && ours && !early {
			t.Errorf("%s %s runs before %s is made", o.kind(), o.name(), name)
		}
		if !hook && !ours && !strings.HasPrefix(name, "Secret ") {
			t.Errorf("%s %s names %s, which nobody makes", o.kind(), o.name(), name)
		}
	}
}

// selects: what an object selects is one Deployment's pods.
func (r release) selects(t *testing.T, o object) {
	t.Helper()
	selector, _ := o.at("spec", "selector").(map[string]any)
	if o.kind() == "NetworkPolicy" {
		selector, _ = o.at("spec", "podSelector", "matchLabels").(map[string]any)
	} else if labels, ok := selector["matchLabels"].(map[string]any); ok {
		selector = labels
	}
	found := 0
	for _, d := range r.objects {
		labels, _ := d.at("spec", "template", "metadata", "labels").(map[string]any)
		fits := len(selector) > 0 && (d.kind() == "Deployment" || d.kind() == "Job")
		for k, v := range selector {
			fits = fits && labels[k] == v
		}
		if fits && d.kind() == "Job" {
			t.Errorf("%s %s selects the pods of the Job %s", o.kind(), o.name(), d.name())
		} else if fits {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%s %s selects the pods of %d Deployments", o.kind(), o.name(), found)
	}
}

func (r release) unique(t *testing.T) {
	t.Helper()
	seen := map[string]bool{}
	for _, o := range r.objects {
		name := o.kind() + " " + o.name()
		if seen[name] {
			t.Errorf("%s is there twice", name)
		}
		seen[name] = true
		if len(o.name()) > 63 {
			t.Errorf("%s has a name of more than 63 characters", name)
		}
	}
}

// A Deployment's pods are replaced when their own configuration changes, and not when another's does.
func TestConfigurationReplacesPods(t *testing.T) {
	t.Parallel()
	checksum := func(args ...string) map[string]string {
		out := map[string]string{}
		for _, o := range objects(t, render(t, append([]string{"-f", valueFiles(t)["minimal"]}, args...)...)) {
			if o.kind() == "Deployment" {
				out[o.component()] = o.str("spec", "template", "metadata", "annotations", "checksum/config")
			}
		}
		return out
	}
	before, after := checksum(), checksum("--set", "edge.config.EDGE_LOG_LEVEL=DEBUG")
	if before["edge"] == "" || before["edge"] == after["edge"] {
		t.Errorf("edge: %q and %q", before["edge"], after["edge"])
	}
	if before["control"] != after["control"] || before["relay"] != after["relay"] {
		t.Errorf("%v and %v", before, after)
	}
}

// The images that the chart's metadata lists are those that it runs.
func TestListedImages(t *testing.T) {
	t.Parallel()
	var chart struct {
		Annotations map[string]string `json:"annotations"`
	}
	read(t, filepath.Join(root(t), "helm/storefront/Chart.yaml"), &chart)
	var listed []struct{ Image string }
	if err := yaml.Unmarshal([]byte(chart.Annotations["artifacthub.io/images"]), &listed); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, entry := range listed {
		want[entry.Image] = true
	}
	got := map[string]bool{}
	for _, o := range objects(t, render(t, "-f", valueFiles(t)["minimal"])) {
		for _, raw := range list[map[string]any](o.pod().at("containers")) {
			got[object(raw).str("image")] = true
		}
	}
	if !maps.Equal(want, got) {
		t.Errorf("listed %v, run %v", want, got)
	}
}
