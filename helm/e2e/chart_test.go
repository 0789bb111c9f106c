package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"storefront.internal/helm/e2e/program"
)

// TestRelease installs a release on an empty database, upgrades it with a migration and again without one,
// rolls it back and uninstalls it.
func TestRelease(t *testing.T) {
	h := shared
	ns := h.namespace(t, allSecrets...)
	do := func(args ...string) {
		t.Helper()
		if _, err := h.helm(t, ns, args...); err != nil {
			t.Fatal(err)
		}
	}

	do(h.release("install", "old")...)
	h.serving(t, ns, "old")
	h.migrated(t, ns, 1)
	if said, err := h.schema(h.old); err != nil {
		t.Fatalf("the installation did not migrate the database: %v\n%s", err, said)
	}
	if said, err := h.schema(h.now); err == nil {
		t.Fatalf("the upgrade would have nothing to migrate:\n%s", said)
	}
	h.made(t, ns)

	do(h.release("upgrade", "new")...)
	h.serving(t, ns, "new")
	h.migrated(t, ns, 2)
	after, err := h.schema(h.now)
	if err != nil {
		t.Fatalf("the upgrade did not migrate: %v\n%s", err, after)
	}

	do(h.release("upgrade", "new", "--set=edge.replicaCount=4")...)
	h.serving(t, ns, "new")
	h.migrated(t, ns, 3)
	if again, err := h.schema(h.now); err != nil || again != after {
		t.Errorf("a second run of the migration changed the schema (%v):\n%s\n%s", err, after, again)
	}

	do("test", "shop", "--timeout=3m")
	h.tested(t, ns)

	do("rollback", "shop", "1", "--wait", "--timeout=5m")
	h.serving(t, ns, "old")
	if said, err := h.schema(h.old); err != nil {
		t.Errorf("the old release does not find its schema: %v\n%s", err, said)
	}
	h.admitted(t, ns)

	do("uninstall", "shop", "--wait", "--timeout=5m")
	h.gone(t, ns)
}

// made checks that the objects of all kinds exist.
func (h *environment) made(t *testing.T, namespace string) {
	t.Helper()
	for resource, count := range map[string]int{
		"deployments": 3, "servicemonitors": 3, "prometheusrules": 1, "scaledobjects": 1, "httproutes": 1,
		"ingresses": 1, "horizontalpodautoscalers": 1,
	} {
		if got := h.objects(t, namespace, resource); len(got) != count {
			t.Errorf("%d %s, want %d", len(got), resource, count)
		}
	}
	for _, resource := range []string{"services", "configmaps", "serviceaccounts", "poddisruptionbudgets",
		"networkpolicies"} {
		if len(h.objects(t, namespace, resource)) == 0 {
			t.Errorf("no %s", resource)
		}
	}
	for _, r := range h.objects(t, namespace, "prometheusrules") {
		if len(r.items("spec", "groups")) == 0 {
			t.Error("the PrometheusRule has no groups")
		}
	}
}

// tested checks that the Job of `helm test` was admitted and started with the Service's address.
// deploy/helmtest runs the script itself against a real edge.
func (h *environment) tested(t *testing.T, namespace string) {
	t.Helper()
	runs, waiting := h.jobs.of(namespace)
	n := 0
	for _, r := range runs {
		if !r.isTest() {
			continue
		}
		n++
		base := "BASE_URL=http://shop-storefront-edge." + namespace + ".svc:80"
		if r.err != nil || len(r.args) != 1 || !strings.Contains(r.args[0], "curl") ||
			!slices.Contains(r.env, base) {
			t.Errorf("%s: %v, %v, want %s", r.job, r.err, r.env, base)
		}
	}
	if n != 1 || waiting != "" {
		t.Errorf("%d Jobs of helm test, waiting: %s", n, waiting)
	}
}

// admitted checks that no pod was rejected.
func (h *environment) admitted(t *testing.T, namespace string) {
	t.Helper()
	var events list
	if err := h.api.get("/api/v1/namespaces/"+namespace+"/events?fieldSelector=reason=FailedCreate",
		&events); err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		if strings.Contains(e.text("message"), "violates PodSecurity") {
			t.Errorf("%s: %s", e.text("involvedObject", "name"), e.text("message"))
		}
	}
}

// gone checks that nothing but the Job of the hook is left, whose logs are kept until the next release.
func (h *environment) gone(t *testing.T, namespace string) {
	t.Helper()
	for resource := range kinds {
		if resource == "jobs" {
			for _, j := range h.objects(t, namespace, resource) {
				if j.text("metadata", "annotations", "helm.sh/hook") == "" {
					t.Errorf("the Job %s is left", j.name())
				}
			}
			continue
		}
		var left []object
		for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
			left = nil
			for _, o := range h.objects(t, namespace, resource) {
				if o.text("metadata", "labels", "batch.kubernetes.io/job-name") == "" {
					left = append(left, o)
				}
			}
			if len(left) == 0 || time.Now().After(end) {
				break
			}
		}
		if len(left) != 0 {
			t.Errorf("%s: %s is left", resource, left[0].name())
		}
	}
}

// TestHookNeedsItsSecret checks that the migration Job does not run without its Secret. So the test also
// detects a hook that needs an object that the release creates later.
func TestHookNeedsItsSecret(t *testing.T) {
	h := shared
	ns := h.namespace(t, "database", "engine", "storefront-secrets")
	if _, err := h.helm(t, ns, h.release("install", "new", "--timeout=15s")...); err == nil {
		t.Fatal("the install succeeded without the migration's Secret")
	}
	err := program.Wait(2*time.Minute, func() error { // helm times out, the Job does not
		if runs, waiting := h.jobs.of(ns); len(runs) != 0 || !strings.Contains(waiting, "database-owner") {
			return fmt.Errorf("%d runs, waiting: %q", len(runs), waiting)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if got := h.objects(t, ns, "deployments"); len(got) != 0 {
		t.Errorf("%d Deployments without a schema", len(got))
	}
}

// TestMisspeltValue checks that the chart's schema rejects misspelt values and nothing is created.
func TestMisspeltValue(t *testing.T) {
	h := shared
	ns := h.namespace(t)
	for set, word := range map[string]string{"edge.replicaCuont=3": "replicaCuont",
		"relay.keda.enabeld=true": "enabeld", "postgres.host=x": "postgres"} {
		_, err := h.helm(t, ns, h.release("install", "new", "--set="+set)...)
		if err == nil || !strings.Contains(err.Error(),
			"values don't meet the specifications of the schema") ||
			!strings.Contains(err.Error(), "'"+word+"'") {
			t.Errorf("%s: %v", set, err)
		}
	}
	h.untouched(t, ns)
}

// TestRestricted checks that the namespace of the tests rejects privileged pods.
func TestRestricted(t *testing.T) {
	h := shared
	ns := h.namespace(t)
	pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "privileged"},
		"spec": object{"containers": []object{{
			"name": "c", "image": "none", "securityContext": object{"privileged": true},
		}}}}
	h.rejects(t, "/api/v1/namespaces/"+ns+"/pods", pod, 403, "violates PodSecurity")
	if err := h.api.create("/api/v1/namespaces/kube-system/pods?dryRun=All", pod); err != nil {
		t.Errorf("the cluster rejects it in all namespaces: %v", err)
	}
}

// TestDefinitions checks that the schemas of the custom resources reject invalid objects.
func TestDefinitions(t *testing.T) {
	h := shared
	ns := h.namespace(t)
	for resource, o := range map[string]object{
		"prometheusrules": {"kind": "PrometheusRule",
			"spec": object{"groups": []object{{"name": "g", "rules": []object{{"alert": "NoExpression"}}}}}},
		"servicemonitors": {"kind": "ServiceMonitor", "spec": object{"endpoints": []object{{"port": 9090}},
			"selector": object{}}},
		"scaledobjects": {"kind": "ScaledObject", "spec": object{"triggers": []object{{"type": "kafka",
			"metadata": object{"lagThreshold": 5}}}}},
		"httproutes": {"kind": "HTTPRoute",
			"spec": object{"rules": []object{{"matches": []object{{"path": object{"type": "Prefix",
				"value": "/v1"}}}}}}},
	} {
		o["apiVersion"], o["metadata"] = kinds[resource], object{"name": "wrong"}
		h.rejects(t, "/apis/"+kinds[resource]+"/namespaces/"+ns+"/"+resource, o, 422, "Invalid")
	}
}
