//go:build helm

package helmtest

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// The modules whose schemas judge what is rendered; only their files are read.
const (
	kubernetesModule = "k8s.io/kubernetes@v1.36.3"
	prometheusModule = "github.com/prometheus-operator/prometheus-operator@v0.93.1"
	kedaModule       = "github.com/kedacore/keda/v2@v2.21.0"
	gatewayModule    = "sigs.k8s.io/gateway-api@v1.6.1"
	externalModule   = "github.com/external-secrets/external-secrets@v1.3.2"
)

// judge holds a strict schema for every kind: a field that the API does not know is an error.
type judge struct {
	compiler *jsonschema.Compiler
	address  map[string]string // apiVersion/kind to the schema's address
}

func newJudge(t *testing.T) *judge {
	t.Helper()
	j := &judge{compiler: jsonschema.NewCompiler(), address: map[string]string{}}
	j.compiler.DefaultDraft(jsonschema.Draft7)
	j.addBuiltIns(t, filepath.Join(module(t, kubernetesModule), "api/openapi-spec/swagger.json"))
	for _, crds := range []string{
		filepath.Join(module(t, prometheusModule), "example/prometheus-operator-crd/monitoring.coreos.com_*.yaml"),
		filepath.Join(module(t, kedaModule), "config/crd/bases/keda.sh_scaledobjects.yaml"),
		filepath.Join(module(t, kedaModule), "config/crd/bases/keda.sh_triggerauthentications.yaml"),
		filepath.Join(module(t, gatewayModule), "config/crd/standard/gateway.networking.k8s.io_*.yaml"),
		filepath.Join(module(t, externalModule), "config/crds/bases/external-secrets.io_*.yaml"),
	} {
		paths, err := filepath.Glob(crds)
		if err != nil || len(paths) == 0 {
			t.Fatalf("no CRD at %s: %v", crds, err)
		}
		for _, path := range paths {
			j.addCRD(t, path)
		}
	}
	return j
}

// module is the folder of a module in the module cache; its source is not compiled.
func module(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", name)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := cmd.Output()
	var answer struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &answer); errors.Join(err, jsonErr) != nil || answer.Dir == "" {
		t.Fatalf("%s: %v %s", name, err, answer.Error)
	}
	return answer.Dir
}

// addBuiltIns reads Kubernetes' own OpenAPI document.
func (j *judge) addBuiltIns(t *testing.T, path string) {
	t.Helper()
	var doc struct {
		Definitions map[string]map[string]any `json:"definitions"`
	}
	read(t, path, &doc)
	definitions := map[string]any{}
	for name, def := range doc.Definitions {
		switch {
		case strings.HasSuffix(name, ".IntOrString"), strings.HasSuffix(name, ".Quantity"):
			def = map[string]any{"type": []any{"string", "integer", "number"}}
		default:
			tighten(def)
		}
		definitions[name] = def
		for _, gvk := range list[map[string]any](def["x-kubernetes-group-version-kind"]) {
			j.address[apiVersion(gvk["group"], gvk["version"])+"/"+gvk["kind"].(string)] = "kubernetes.json#/definitions/" + name
		}
	}
	j.add(t, "kubernetes.json", map[string]any{"definitions": definitions})
}

func apiVersion(group, version any) string {
	if group == "" {
		return version.(string)
	}
	return group.(string) + "/" + version.(string)
}

func (j *judge) addCRD(t *testing.T, path string) {
	t.Helper()
	var crd struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
				}
			}
		}
	}
	read(t, path, &crd)
	for _, v := range crd.Spec.Versions {
		schema := v.Schema.OpenAPIV3Schema
		tighten(schema)
		properties, _ := schema["properties"].(map[string]any)
		properties["metadata"] = map[string]any{"type": "object"}
		kind := crd.Spec.Group + "/" + v.Name + "/" + crd.Spec.Names.Kind
		j.add(t, kind+".json", schema)
		j.address[kind] = kind + ".json"
	}
}

func (j *judge) add(t *testing.T, address string, schema map[string]any) {
	t.Helper()
	if err := j.compiler.AddResource(address, plain(t, schema)); err != nil {
		t.Fatal(err)
	}
}

// tighten refuses unknown fields and says in JSON Schema what Kubernetes says in its own words.
func tighten(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			tighten(e)
		}
	case map[string]any:
		if _, ok := v["properties"].(map[string]any); ok && v["additionalProperties"] == nil && v["x-kubernetes-preserve-unknown-fields"] == nil {
			v["additionalProperties"] = false
		}
		if v["x-kubernetes-int-or-string"] == true {
			delete(v, "type")
		}
		if kind, ok := v["type"].(string); ok && v["nullable"] == true {
			v["type"] = []any{kind, "null"}
		}
		delete(v, "format") // int32 and the like; JSON Schema knows others
		for _, e := range v {
			tighten(e)
		}
	}
}

func (j *judge) check(t *testing.T, o object) {
	t.Helper()
	kind := o.str("apiVersion") + "/" + o.kind()
	address, ok := j.address[kind]
	if !ok {
		t.Errorf("%s %s: no schema", kind, o.name())
		return
	}
	schema, err := j.compiler.Compile(address)
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	if err := schema.Validate(plain(t, o)); err != nil {
		t.Errorf("%s %s: %v", kind, o.name(), err)
	}
}

// plain is the value as a JSON decoder gives it.
func plain(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// Every rendered object is valid for Kubernetes, or for its CRD, with no field that is not known there.
func TestObjectsAreValid(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	for name, values := range valueFiles(t) {
		t.Run(name, func(t *testing.T) {
			for _, o := range objects(t, render(t, "-f", values)) {
				j.check(t, o)
			}
		})
	}
	t.Run("a misspelt field is refused", func(t *testing.T) {
		o := object{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": map[string]any{"name": "x"}, "spec": map[string]any{"maxUnavailabel": 1}}
		schema, err := j.compiler.Compile(j.address["policy/v1/PodDisruptionBudget"])
		if err != nil || schema.Validate(plain(t, o)) == nil {
			t.Errorf("it was taken: %v", err)
		}
	})
}

// Every Secret and key that the example's values name is made by one of the examples.
func TestExamplesFitTheirValues(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(root(t), "helm/examples")
	text, err := os.ReadFile(filepath.Join(folder, "external-secrets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]bool{
		"storefront-pg-ca ca.crt":   true, // CloudNativePG makes it for a Cluster named storefront-pg
		"storefront-kafka password": true, // Strimzi makes it for the KafkaUser storefront-kafka
	}
	for _, o := range objects(t, string(text)) {
		for _, entry := range list[map[string]any](o.at("spec", "data")) {
			made[o.str("spec", "target", "name")+" "+object(entry).str("secretKey")] = true
		}
	}
	named := 0
	for _, o := range objects(t, render(t, "-f", filepath.Join(folder, "operators-values.yaml"))) {
		for _, raw := range list[map[string]any](o.pod().at("containers")) {
			for _, entry := range list[map[string]any](raw["env"]) {
				ref := object(entry).str("valueFrom", "secretKeyRef", "name") + " " + object(entry).str("valueFrom", "secretKeyRef", "key")
				if ref != " " && !made[ref] {
					t.Errorf("%s %s: nobody makes %s", o.kind(), o.name(), ref)
				}
				if ref != " " {
					named++
				}
			}
		}
	}
	if named == 0 {
		t.Error("the example names no Secret")
	}
}

// The examples are valid where the CRD is published in a Go module; of the others (CloudNativePG, Strimzi, the Redis operator)
// the syntax is looked at.
func TestExamples(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	paths, err := filepath.Glob(filepath.Join(root(t), "helm/examples/*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	judged := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, "-values.yaml") {
			if all := objects(t, render(t, "-f", path)); len(all) == 0 {
				t.Errorf("%s renders nothing", path)
			}
			continue
		}
		for _, o := range objects(t, string(text)) {
			if o.kind() == "" || o.name() == "" || o.str("apiVersion") == "" {
				t.Errorf("%s: an object without apiVersion, kind or name", path)
			}
			if _, known := j.address[o.str("apiVersion")+"/"+o.kind()]; known {
				j.check(t, o)
				judged++
			}
		}
	}
	if judged == 0 {
		t.Error("no example was judged by a schema")
	}
}
