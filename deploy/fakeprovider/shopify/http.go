package shopify

import (
	"encoding/json"
	"mime"
	"net/http"
	"regexp"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"

	"storefront.internal/deploy/fakeprovider/bucket"
	"storefront.internal/deploy/fakeprovider/stores"
)

// call is one request for one shop.
type call struct {
	store *stores.Store
	base  string // the shop's URL as the caller reaches it
}

func (f *Fake) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{shop}/admin/api/{version}/graphql.json", f.graphql)
	mux.HandleFunc("GET /{shop}/bulk/{file}", f.bulkFile)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound) })
	return mux
}

// shopName takes a shop's name or its domain.
func shopName(text string) string { return strings.TrimSuffix(strings.ToLower(text), ".myshopify.com") }

func (f *Fake) graphql(w http.ResponseWriter, r *http.Request) {
	version := r.PathValue("version")
	if !regexp.MustCompile(`^(\d{4}-(01|04|07|10)|unstable)$`).MatchString(version) {
		refuse(w, http.StatusNotFound)
		return
	}
	s := f.Store(r.PathValue("shop"))
	if status := s.Access.Check(r.Header.Get("X-Shopify-Access-Token")); status != http.StatusOK {
		refuse(w, status)
		return
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		refuse(w, http.StatusBadRequest)
		return
	}
	var in struct {
		Query         string         `json:"query"`
		OperationName string         `json:"operationName"`
		Variables     map[string]any `json:"variables"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest)
		return
	}
	w.Header().Set("X-Shopify-API-Version", version)
	base := "http://" + r.Host + strings.TrimSuffix(r.RequestURI, "/admin/api/"+version+"/graphql.json")
	status, answer := f.answer(call{s, base}, in.Query, in.OperationName, in.Variables)
	stores.WriteJSON(w, status, answer)
}

// prepare parses and validates an operation.
func (f *Fake) prepare(
	query, name string,
	vars map[string]any,
) (*ast.OperationDefinition, map[string]any, gqlerror.List) {
	//nolint:staticcheck // the library's default rules suit a fake
	document, faults := gqlparser.LoadQuery(f.schema, query)
	if len(faults) > 0 {
		return nil, nil, faults
	}
	op := document.Operations.ForName(name)
	if op == nil {
		return nil, nil, gqlerror.List{gqlerror.Errorf("No operation named %q", name)}
	}
	if len(document.Fragments) > 0 {
		return nil, nil, gqlerror.List{gqlerror.Errorf("this fake knows no named fragments")}
	}
	values, err := validator.VariableValues(f.schema, op, vars)
	if err != nil {
		return nil, nil, gqlerror.List{gqlerror.WrapIfUnwrapped(err)}
	}
	return op, values, nil
}

func (f *Fake) answer(r call, query, name string, vars map[string]any) (int, object) {
	op, values, faults := f.prepare(query, name, vars)
	if len(faults) > 0 {
		return http.StatusOK, object{"errors": faults}
	}
	requested := price(op.SelectionSet, values)
	if requested > mostForOne {
		return http.StatusOK, object{"errors": []object{{
			"message":    "Query cost exceeds the single query max cost limit",
			"extensions": object{"code": "MAX_COST_EXCEEDED", "cost": requested, "maxCost": mostForOne},
		}}}
	}
	state, ok := r.store.Bucket.Add(requested)
	if !ok {
		return f.throttle(requested, state)
	}
	root := f.queries(r)
	if op.Operation == ast.Mutation {
		root = f.mutations(r)
	}
	e := &execution{vars: values}
	data := e.object(root, op.SelectionSet)
	actual := min(float64(e.count), requested)
	state = r.store.Bucket.Refund(requested - actual)
	out := object{"data": data, "extensions": object{"cost": costs(requested, actual, state)}}
	if len(e.errors) > 0 {
		out["errors"] = e.errors
	}
	return http.StatusOK, out
}

// throttle answers with status 200 and 429 by turns: reports about the provider disagree, so a caller must be
// ready for both.
func (f *Fake) throttle(requested float64, state bucket.State) (int, object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.throttled++
	status := http.StatusTooManyRequests
	if f.throttled%2 == 1 {
		status = http.StatusOK
	}
	return status, object{
		"errors":     throttledErrors(),
		"extensions": object{"cost": costs(requested, nil, state)},
	}
}

func throttledErrors() []object {
	return []object{{"message": "Throttled", "extensions": object{"code": "THROTTLED"}}}
}

func costs(requested float64, actual any, s bucket.State) object {
	return object{
		"requestedQueryCost": requested, "actualQueryCost": actual,
		"throttleStatus": object{
			"maximumAvailable": s.Capacity, "currentlyAvailable": float64(int(s.Room)), "restoreRate": s.Leak,
		},
	}
}

func refuse(w http.ResponseWriter, status int) {
	text := http.StatusText(status)
	switch status {
	case http.StatusUnauthorized:
		text = "[API] Invalid API key or access token (unrecognized login or wrong password)"
	case http.StatusPaymentRequired:
		text = "Unavailable Shop"
	case http.StatusTooManyRequests:
		stores.WriteJSON(w, status, object{"errors": throttledErrors()})
		return
	}
	stores.WriteJSON(w, status, object{"errors": text})
}
