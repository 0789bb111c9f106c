package httpapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"storefront.internal/edge/internal/recommend"
	"storefront.internal/edge/internal/signaljson"
	"storefront.internal/edge/internal/signalrules"
	"storefront.internal/shared/problem"
	"storefront.internal/shared/storekey"
)

// document loads edge/openapi.yaml once.
func document(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := loadDocument()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

var loadDocument = sync.OnceValues(func() (*openapi3.T, error) {
	openapi3filter.RegisterBodyDecoder("text/javascript", openapi3filter.FileBodyDecoder)
	doc, err := openapi3.NewLoader().LoadFromFile("../../openapi.yaml")
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(context.Background())
})

// The document and the route table are equal.
func TestRoutesEqualTheDocument(t *testing.T) {
	t.Parallel()
	var documented, served []string
	for path, item := range document(t).Paths.Map() {
		for method, op := range item.Operations() {
			scope, _ := op.Extensions["x-scope"].(string)
			documented = append(documented, fmt.Sprint(method, " ", path, " ", op.OperationID, " ", scope))
			if open := op.Security != nil && len(*op.Security) == 0; open != (scope == "") {
				t.Errorf("%s: security and x-scope disagree", op.OperationID)
			}
		}
	}
	for _, r := range Routes() {
		served = append(served, fmt.Sprint(r.Method, " ", r.Path, " ", r.Operation, " ", r.Scope))
		if _, known := storekey.ParseScope(string(r.Scope)); r.Scope != "" && !known {
			t.Errorf("%s: unknown scope", r.Operation)
		}
	}
	slices.Sort(documented)
	slices.Sort(served)
	if !slices.Equal(documented, served) {
		t.Errorf("documented:\n%s\nserved:\n%s", strings.Join(documented, "\n"), strings.Join(served, "\n"))
	}
}

// Every code of the document is a code of the service, with the status under which it is documented.
func TestProblemCodesOfTheDocumentExist(t *testing.T) {
	t.Parallel()
	doc := document(t)
	known := map[string]int{}
	for _, e := range problem.Entries() {
		known[string(e.Code)] = e.Status
	}
	listed := map[string]bool{}
	for _, code := range doc.Components.Schemas["ProblemCode"].Value.Enum {
		listed[code.(string)] = true
		if known[code.(string)] == 0 {
			t.Errorf("%v is no code of the service", code)
		}
	}
	for name, response := range doc.Components.Responses {
		schema := response.Value.Content["application/problem+json"].Schema.Value.AllOf[1].Value
		codes := schema.Properties["code"].Value.Enum
		if c := schema.Properties["code"].Value.Const; c != nil {
			codes = []any{c}
		}
		if len(codes) == 0 {
			t.Errorf("%s names no code", name)
		}
		for _, code := range codes {
			if !listed[code.(string)] {
				t.Errorf("%s: %v is not in ProblemCode", name, code)
			}
		}
	}
}

// The limits of a batch and of a list of recommendations stand in the document, and that of a batch in the
// chart's comments too.
func TestLimitsOfTheDocument(t *testing.T) {
	t.Parallel()
	doc := document(t)
	schema := func(name, property string) *openapi3.Schema {
		return doc.Components.Schemas[name].Value.Properties[property].Value
	}
	limits := doc.Components.Responses["SignalBatchLimitExceeded"].Value
	problem := limits.Content["application/problem+json"].Schema.Value.AllOf[1].Value.Properties
	for name, tc := range map[string]struct{ documented, want any }{
		"signals": {*schema("SignalBatch", "signals").MaxItems, uint64(signaljson.MaxSignals)},
		"index":   {*schema("SignalResult", "index").Max, float64(signaljson.MaxSignals - 1)},
		"max_signals_per_batch": {fmt.Sprint(problem["max_signals_per_batch"].Value.Const),
			fmt.Sprint(signaljson.MaxSignals)},
		"actual_signals":      {*problem["actual_signals"].Value.Min, float64(signaljson.MaxSignals + 1)},
		"recommendations":     {*schema("RecommendationRequest", "limit").Max, float64(recommend.MaxItems)},
		"items of a Decision": {*schema("Decision", "items").MaxItems, uint64(recommend.MaxItems)},
	} {
		if tc.documented != tc.want {
			t.Errorf("%s: documented %v, want %v", name, tc.documented, tc.want)
		}
	}
	if text := fmt.Sprintf("More than %d signals",
		signaljson.MaxSignals); !strings.HasPrefix(*limits.Description, text) {
		t.Errorf("%q does not begin with %q", *limits.Description, text)
	}
	values, err := os.ReadFile("../../../helm/storefront/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("a batch of up to %d signals",
		signaljson.MaxSignals); !strings.Contains(string(values), text) {
		t.Errorf("the chart's values do not say %q", text)
	}
}

func TestReasonsOfTheDocumentAreTheClosedSet(t *testing.T) {
	t.Parallel()
	var documented, real []string
	for _, reason := range document(t).Components.Schemas["RejectionReason"].Value.Enum {
		documented = append(documented, reason.(string))
	}
	for _, reason := range signalrules.Reasons() {
		real = append(real, string(reason))
	}
	slices.Sort(documented)
	if !slices.Equal(documented, real) {
		t.Errorf("documented %v, want %v", documented, real)
	}
}

// checkAgainstDocument checks the headers of every answer, and the answer of an operation against its
// documentation.
func checkAgainstDocument(t *testing.T, s *Server, method, target string, r *reply) {
	t.Helper()
	if got := r.Header.Get("Access-Control-Allow-Origin"); got != "*" {
		t.Errorf("Access-Control-Allow-Origin %q of %s %s", got, method, target)
	}
	if got := r.Header.Get("Access-Control-Expose-Headers"); got != exposeHeaders {
		t.Errorf("Access-Control-Expose-Headers %q of %s %s", got, method, target)
	}
	if r.Header.Get("X-Request-Id") == "" {
		t.Errorf("no X-Request-Id of %s %s", method, target)
	}
	if r.StatusCode >= 400 && method != "HEAD" {
		checkProblem(t, r)
	}
	path, _, _ := strings.Cut(target, "?")
	route, _, _ := s.router.match(method, []byte(path))
	if route == nil || method == "HEAD" || r.StatusCode == http.StatusRequestTimeout ||
		r.StatusCode == http.StatusRequestHeaderFieldsTooLarge {
		return
	}
	item := document(t).Paths.Value(route.Path)
	op := item.GetOperation(method)
	if op.Responses.Status(r.StatusCode) == nil {
		t.Errorf("%s: status %d is not documented", route.Operation, r.StatusCode)
		return
	}
	req, err := http.NewRequest(method, "http://edge.example"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req,
			Route: &routers.Route{Spec: document(t), Path: route.Path, PathItem: item, Method: method,
				Operation: op}},
		Status: r.StatusCode, Header: r.Header, Body: io.NopCloser(bytes.NewReader(decoded(t, r))),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	if err := openapi3filter.ValidateResponse(context.Background(), input); err != nil {
		t.Errorf("%s: %v\n%s", route.Operation, err, r.body)
	}
}

// checkProblem checks that a problem is as package problem's table says.
func checkProblem(t *testing.T, r *reply) {
	t.Helper()
	if got := r.Header.Get("Content-Type"); got != problem.ContentType {
		t.Errorf("Content-Type %q of a problem", got)
	}
	p := r.problem(t)
	for _, e := range problem.Entries() {
		if string(e.Code) != p.Code {
			continue
		}
		if p.Type != errorsBase+e.Slug() || p.Title != e.Title || p.Status != r.StatusCode ||
			p.Detail == "" || p.RequestID != r.Header.Get("X-Request-Id") {
			t.Errorf("problem %s does not fit the table or the answer (status %d, X-Request-Id %s)", r.body,
				r.StatusCode, r.Header.Get("X-Request-Id"))
		}
		if p.Code == "invalid_request" && p.Errors == nil {
			t.Errorf("problem %s has no errors", r.body)
		}
		return
	}
	t.Errorf("code %q is not of the table", p.Code)
}

// decoded is the body without its content coding.
func decoded(t *testing.T, r *reply) []byte {
	t.Helper()
	if r.Header.Get("Content-Encoding") != "gzip" {
		return r.body
	}
	z, err := gzip.NewReader(bytes.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}
