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

// The modules that contain the schemas; only their files are read.
const (
	kubernetesModule = "k8s.io/kubernetes@v1.36.3"
	prometheusModule = "github.com/prometheus-operator/prometheus-operator@v0.93.1"
	kedaModule       = "github.com/kedacore/keda/v2@v2.21.0"
	gatewayModule    = "sigs.k8s.io/gateway-api@v1.6.1"
	externalModule   = "github.com/external-secrets/external-secrets@v1.3.2"
)

// schemas holds a strict schema for each kind: a field that the API does not know is an error.
type schemas struct {
	compiler *jsonschema.Compiler
	url      map[string]string // by apiVersion/kind
}

func loadSchemas(t *testing.T) *schemas {
	t.Helper()
	s := &schemas{compiler: jsonschema.NewCompiler(), url: map[string]string{}}
	s.compiler.DefaultDraft(jsonschema.Draft7)
	s.addBuiltIns(t, filepath.Join(module(t, kubernetesModule), "api/openapi-spec/swagger.json"))
	for _, crds := range []string{
		filepath.Join(module(t, prometheusModule),
			"example/prometheus-operator-crd/monitoring.coreos.com_*.yaml"),
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
			s.addCRD(t, path)
		}
	}
	return s
}

// module returns the folder of a module in the module cache. Its source is not compiled.
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

// addBuiltIns reads the OpenAPI document of Kubernetes.
func (s *schemas) addBuiltIns(t *testing.T, path string) {
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
			makeStrict(def)
		}
		definitions[name] = def
		for _, gvk := range list[map[string]any](def["x-kubernetes-group-version-kind"]) {
			s.url[apiVersion(gvk["group"],
				gvk["version"])+"/"+gvk["kind"].(string)] = "kubernetes.json#/definitions/" + name
		}
	}
	s.add(t, "kubernetes.json", map[string]any{"definitions": definitions})
}

func apiVersion(group, version any) string {
	if group == "" {
		return version.(string)
	}
	return group.(string) + "/" + version.(string)
}

func (s *schemas) addCRD(t *testing.T, path string) {
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
		makeStrict(schema)
		properties, _ := schema["properties"].(map[string]any)
		properties["metadata"] = map[string]any{"type": "object"}
		kind := crd.Spec.Group + "/" + v.Name + "/" + crd.Spec.Names.Kind
		s.add(t, kind+".json", schema)
		s.url[kind] = kind + ".json"
	}
}

func (s *schemas) add(t *testing.T, url string, schema map[string]any) {
	t.Helper()
	if err := s.compiler.AddResource(url, asJSON(t, schema)); err != nil {
		t.Fatal(err)
	}
}

// makeStrict forbids unknown fields and translates the extensions of Kubernetes to JSON Schema.
func makeStrict(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			makeStrict(e)
		}
	case map[string]any:
		if _, ok := v["properties"].(map[string]any); ok && v["additionalProperties"] == nil &&
			v["x-kubernetes-preserve-unknown-fields"] == nil {
			v["additionalProperties"] = false
		}
		if v["x-kubernetes-int-or-string"] == true {
			delete(v, "type")
		}
		if kind, ok := v["type"].(string); ok && v["nullable"] == true {
			v["type"] = []any{kind, "null"}
		}
		delete(v, "format") // int32 and others that JSON Schema does not define
		for _, e := range v {
			makeStrict(e)
		}
	}
}

func (s *schemas) check(t *testing.T, o object) {
	t.Helper()
	kind := o.str("apiVersion") + "/" + o.kind()
	url, ok := s.url[kind]
	if !ok {
		t.Errorf("%s: no schema for %s", o, kind)
		return
	}
	schema, err := s.compiler.Compile(url)
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	if err := schema.Validate(asJSON(t, o)); err != nil {
		t.Errorf("%s: %v", o, err)
	}
}

// asJSON returns the value as a JSON decoder returns it.
func asJSON(t *testing.T, v any) any {
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

// TestObjectsAreValid validates all rendered objects against the schemas of Kubernetes and of the CRDs.
func TestObjectsAreValid(t *testing.T) {
	t.Parallel()
	s := loadSchemas(t)
	for name, values := range valueFiles(t) {
		t.Run(name, func(t *testing.T) {
			for _, o := range objects(t, render(t, "-f", values)) {
				s.check(t, o)
			}
		})
	}
	t.Run("a misspelt field is rejected", func(t *testing.T) {
		o := object{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
			"metadata": map[string]any{"name": "x"}, "spec": map[string]any{"maxUnavailabel": 1}}
		schema, err := s.compiler.Compile(s.url["policy/v1/PodDisruptionBudget"])
		if err != nil || schema.Validate(asJSON(t, o)) == nil {
			t.Errorf("it was accepted: %v", err)
		}
	})
}

// TestExamplesCreateTheirSecrets checks that an example creates each Secret and key that the example's values
// name.
func TestExamplesCreateTheirSecrets(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(root(t), "helm/examples")
	text, err := os.ReadFile(filepath.Join(folder, "external-secrets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	created := map[string]bool{
		"storefront-pg-ca ca.crt":   true, // by CloudNativePG for a Cluster named storefront-pg
		"storefront-kafka password": true, // by Strimzi for the KafkaUser storefront-kafka
	}
	for _, o := range objects(t, string(text)) {
		for _, entry := range list[map[string]any](o.at("spec", "data")) {
			created[o.str("spec", "target", "name")+" "+object(entry).str("secretKey")] = true
		}
	}
	names := 0
	for _, o := range objects(t, render(t, "-f", filepath.Join(folder, "operators-values.yaml"))) {
		for _, raw := range list[map[string]any](o.pod().at("containers")) {
			for _, entry := range list[map[string]any](raw["env"]) {
				ref := object(entry).str("valueFrom", "secretKeyRef", "name") + " " +
					object(entry).str("valueFrom", "secretKeyRef", "key")
				if ref != " " && !created[ref] {
					t.Errorf("%s: no example creates %s", o, ref)
				}
				if ref != " " {
					names++
				}
			}
		}
	}
	if names == 0 {
		t.Error("the example names no Secret")
	}
}

// TestExamples validates the examples. CRDs that no Go module contains (CloudNativePG, Strimzi, the Redis
// operator) are checked for syntax only.
func TestExamples(t *testing.T) {
	t.Parallel()
	s := loadSchemas(t)
	paths, err := filepath.Glob(filepath.Join(root(t), "helm/examples/*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	validated := 0
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
			if _, known := s.url[o.str("apiVersion")+"/"+o.kind()]; known {
				s.check(t, o)
				validated++
			}
		}
	}
	if validated == 0 {
		t.Error("no example was validated with a schema")
	}
}
