//go:build helm

package helmtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// release is the render of one set of values, and the Secrets of the cluster.
type release struct {
	objects []object
	secrets map[string]map[string]string
}

// container is one container as the kubelet would start it.
type container struct {
	name   string
	args   []string
	env    map[string]string
	ports  map[string]int
	probes map[string]string // startup, liveness, readiness to port name and path, "ops/livez"
	grace  int
}

func (r release) find(t *testing.T, kind, name string) object {
	t.Helper()
	for _, o := range r.objects {
		if o.kind() == kind && o.name() == name {
			return o
		}
	}
	t.Fatalf("no %s %s", kind, name)
	return nil
}

// pod returns the pod template of a Deployment or Job.
func (o object) pod() object {
	spec, _ := o.at("spec", "template", "spec").(map[string]any)
	return spec
}

// container resolves the environment of a pod's only container. A missing reference is an error, as on a
// cluster.
func (r release) container(t *testing.T, kind, name string) container {
	t.Helper()
	pod := r.find(t, kind, name).pod()
	all := list[map[string]any](pod.at("containers"))
	if len(all) != 1 {
		t.Fatalf("%s %s has %d containers", kind, name, len(all))
	}
	raw := object(all[0])
	c := container{name: raw.str("name"), args: list[string](raw.at("args")), env: map[string]string{},
		ports: map[string]int{}, probes: map[string]string{}}
	for _, from := range list[map[string]any](raw.at("envFrom")) {
		config := r.find(t, "ConfigMap", object(from).str("configMapRef", "name"))
		data, _ := config.at("data").(map[string]any)
		for k, v := range data {
			c.env[k] = v.(string)
		}
	}
	for _, entry := range list[map[string]any](raw.at("env")) {
		c.env[object(entry).str("name")] = r.value(t, entry, raw)
	}
	for _, p := range list[map[string]any](raw.at("ports")) {
		c.ports[object(p).str("name")] = int(p["containerPort"].(float64))
	}
	for _, probe := range []string{"startup", "liveness", "readiness"} {
		if get := raw.at(probe+"Probe", "httpGet"); get != nil {
			c.probes[probe] = raw.str(probe+"Probe", "httpGet", "port") +
				raw.str(probe+"Probe", "httpGet", "path")
		}
	}
	if seconds, ok := pod.at("terminationGracePeriodSeconds").(float64); ok {
		c.grace = int(seconds)
	}
	return c
}

func (r release) value(t *testing.T, entry object, of object) string {
	t.Helper()
	if key := entry.str("valueFrom", "secretKeyRef", "key"); key != "" {
		name := entry.str("valueFrom", "secretKeyRef", "name")
		value, ok := r.secret(name)[key]
		if !ok {
			t.Fatalf("%s: Secret %s has no key %s", entry.str("name"), name, key)
		}
		return value
	}
	if resource := entry.str("valueFrom", "resourceFieldRef", "resource"); resource != "" {
		if entry.str("valueFrom", "resourceFieldRef", "containerName") != of.str("name") {
			t.Fatalf("%s refers to another container", entry.str("name"))
		}
		return strconv.FormatInt(bytesOf(t, of.str(append([]string{"resources"},
			strings.Split(resource, ".")...)...)), 10)
	}
	return entry.str("value")
}

// secret is one that exists beside the release, or one that the release makes.
func (r release) secret(name string) map[string]string {
	if s, ok := r.secrets[name]; ok {
		return s
	}
	made := map[string]string{}
	for _, o := range r.objects {
		data, _ := o.at("stringData").(map[string]any)
		for k, v := range data {
			if o.kind() == "Secret" && o.name() == name {
				made[k] = v.(string)
			}
		}
	}
	return made
}

// bytesOf reads the quantities that the chart uses.
func bytesOf(t *testing.T, quantity string) int64 {
	t.Helper()
	for unit, factor := range map[string]int64{"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30} {
		if number, ok := strings.CutSuffix(quantity, unit); ok {
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n * factor
		}
	}
	t.Fatalf("no quantity of bytes: %q", quantity)
	return 0
}

// environ returns the environment of the process.
func (c container) environ() []string {
	var all []string
	for k, v := range c.env {
		all = append(all, fmt.Sprintf("%s=%s", k, v))
	}
	slices.Sort(all)
	return all
}

// move changes the address of a port of the container, because several services run on one machine. The
// rendered address must match the rendered port.
func (c container) move(t *testing.T, variable, port, address string) {
	t.Helper()
	if want := fmt.Sprintf(":%d", c.ports[port]); c.env[variable] != want || c.ports[port] == 0 {
		t.Fatalf("%s is %q, and the container's port %s is %s", variable, c.env[variable], port, want)
	}
	c.env[variable] = address
}
