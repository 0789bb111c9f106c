package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/principal"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/problem"
)

func document(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("../../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestRouteTableIsTheDocument(t *testing.T) {
	t.Parallel()
	doc := document(t)
	documented := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			documented[fmt.Sprint(method, " ", path, " ", op.OperationID, " ",
				op.Extensions["x-principal"])] = true
		}
	}
	for _, r := range (&API{}).table() {
		line := fmt.Sprint(r.method, " ", r.pattern, " ", r.operation, " ", r.role)
		if !documented[line] {
			t.Errorf("served and not documented: %s", line)
		}
		delete(documented, line)
	}
	for line := range documented {
		t.Errorf("documented and not served: %s", line)
	}
}

func TestDocumentedCodesAreInTheProblemTable(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, e := range problem.Entries() {
		known[string(e.Code)] = true
	}
	codes := document(t).Components.Schemas["ProblemCode"].Value.Enum
	if len(codes) == 0 {
		t.Fatal("the document names no code")
	}
	for _, code := range codes {
		if !known[code.(string)] {
			t.Errorf("the document's code %v is not in the problem table", code)
		}
	}
}

// documented is one request and its documented status.
type documented struct {
	operation, method, target, token, body string
	status                                 int
	set                                    func(*fake)
}

func fails(err error) func(*fake) { return func(f *fake) { f.fail = err } }

func off(f *fake) { f.off = true }

// manyResults has every status with all of its members.
func manyResults(f *fake) {
	f.results = nil
	for i, s := range observation.Statuses() {
		r := observation.Result{Index: i, Status: s, ObservationID: "obs_1", EntityID: "tax_1"}
		switch s {
		case observation.Quarantined:
			r.Reason = `missing at /document/a"b`
		case observation.Rejected:
			r.ObservationID, r.Reason = "", string(catalog.MissingRevision)
		}
		f.results = append(f.results, r)
	}
}

// holds makes read_canonical serve a golden document.
func holds(e catalog.Entity, name string) func(*fake) {
	return func(f *fake) {
		raw, err := os.ReadFile("../../../shared/catalog/testdata/" + name + ".golden.json")
		if err != nil {
			panic(err)
		}
		f.snapshot = snapshotOf(e, string(raw))
	}
}

// documentedCases reach every (operation, status) of the document.
func documentedCases() []documented {
	const (
		conns  = "/internal/v1/connections"
		keys   = conns + "/con_1/api-keys"
		noKeys = conns + "/con_none/api-keys"
		inter  = "/internal/v1/brain-interactions"

		deliver  = conns + "/con_1/observations"
		observed = "/internal/v1/observations/"
		one      = `{"observations":[{}]}`
	)
	large := `{"external_store_id":"` + strings.Repeat("x", maxBodyBytes) + `"}`
	blocked := func(f *fake) {
		f.view.Worker = deliveries.Worker{State: deliveries.Blocked, BlockedAt: at()}
		f.view.Total = deliveries.Stats{Pending: 2, OldestPendingAt: at(), DeadLast24h: 1,
			UnconfirmedCreations: 1}
		f.view.Connections = []deliveries.Stats{f.view.Total}
		f.view.Connections[0].ConnectionID = oneConnection
	}
	post, get, del := http.MethodPost, http.MethodGet, http.MethodDelete
	return append(slices.Concat(installationCases(large), shopCases(large), parkedCases(large)), []documented{
		{"create_connection", post, conns, connectorToken, `{"external_store_id":"s"}`, 201, nil},
		{"create_connection", post, conns, connectorToken, `{}`, 400, nil},
		{"create_connection", post, conns, backendToken, `{}`, 401, nil},
		{"create_connection", post, conns, connectorToken, `{"external_store_id":"s"}`, 409,
			fails(fault.New(fault.StoreConnected, ""))},
		{"create_connection", post, conns, connectorToken, `{"external_store_id":"s"}`, 409, off},
		{"create_connection", post, conns, connectorToken, large, 413, nil},
		{"rotate_token", post, conns + "/con_1/token", connectorToken, "", 201, nil},
		{"rotate_token", post, conns + "/con_1/token", engineToken, "", 401, nil},
		{"rotate_token", post, conns + "/con_none/token", connectorToken, "", 404, nil},
		{"rotate_token", post, conns + "/con_1/token", connectorToken, "", 409, off},
		{"issue_key", post, keys, backendToken, "", 201, nil},
		{"issue_key", post, keys, backendToken, `{"scopes":7}`, 400, nil},
		{"issue_key", post, keys, connectorToken, "", 401, nil},
		{"issue_key", post, noKeys, backendToken, "", 404, nil},
		{"issue_key", post, keys, backendToken, large, 413, nil},
		{"issue_key", post, keys, backendToken, `{"scopes":["catalog:write"]}`, 422, nil},
		{"issue_key", post, keys, backendToken, "", 500, fails(errors.New(canaryText))},
		{"issue_key", post, keys, backendToken, "", 503, fails(&fault.Error{Code: fault.ServiceUnavailable,
			RetryAfter: time.Second})},
		{"list_keys", get, keys, backendToken, "", 200, nil},
		{"list_keys", get, keys, "", "", 401, nil},
		{"list_keys", get, noKeys, backendToken, "", 404, nil},
		{"revoke_key", del, keys + "/key_1", backendToken, "", 204, nil},
		{"revoke_key", del, keys + "/key_1", foreignToken, "", 401, nil},
		{"revoke_key", del, noKeys + "/key_1", backendToken, "", 404, nil},
		{"erase_visitor", del, conns + "/con_1/visitors/vis_1", connectorToken, "", 202, nil},
		{"erase_visitor", del, conns + "/con_1/visitors/vis_1", connectorToken, "gzip", 400, nil},
		{"erase_visitor", del, conns + "/con_1/visitors/vis_1", backendToken, "", 401, nil},
		{"erase_visitor", del, conns + "/con_none/visitors/vis_1", connectorToken, "", 404, nil},
		{"view_queue", get, inter + "/queue", backendToken, "", 200, nil},
		{"view_queue", get, inter + "/queue", backendToken, "", 200, blocked},
		{"view_queue", get, inter + "/queue", connectorToken, "", 401, nil},
		{"resume_delivery", post, inter + "/resume", connectorToken, "", 202, nil},
		{"resume_delivery", post, inter + "/resume", backendToken, "", 401, nil},
		{"resume_delivery", post, inter + "/resume", connectorToken, "", 409,
			fails(fault.New(fault.NotBlocked, ""))},
		{"list_dead", get, inter + "/dead", connectorToken, "", 200, nil},
		{"list_dead", get, inter + "/dead?kind=envelope", connectorToken, "", 200, nil},
		{"list_dead", get, inter + "/dead?kind=webhook", connectorToken, "", 400, nil},
		{"list_dead", get, inter + "/dead?limit=0", connectorToken, "", 400, nil},
		{"list_dead", get, inter + "/dead", backendToken, "", 401, nil},
		{"replay_dead", post, inter + "/dead/replay", connectorToken, `{"signal_ids":["sig_1"]}`, 202, nil},
		{"replay_dead", post, inter + "/dead/replay", connectorToken,
			`{"kind":"envelope","signal_ids":["obs_1"]}`, 202, nil},
		{"replay_dead", post, inter + "/dead/replay", connectorToken,
			`{"kind":"webhook","connection_id":"con_1"}`, 400, nil},
		{"replay_dead", post, inter + "/dead/replay", connectorToken, `[]`, 400, nil},
		{"replay_dead", post, inter + "/dead/replay", engineToken, `{}`, 401, nil},
		{"replay_dead", post, inter + "/dead/replay", connectorToken, large, 413, nil},
		{"deliver_observations", post, deliver, holderToken, one, 200, manyResults},
		{"deliver_observations", post, deliver, holderToken, `{"observations":[]}`, 400, nil},
		{"deliver_observations", post, deliver, holderToken, "gzip", 400, nil},
		{"deliver_observations", post, deliver, connectorToken, one, 401, nil},
		{"deliver_observations", post, deliver, "", one, 401, nil},
		{"deliver_observations", post, conns + "/con_2/observations", holderToken, one, 401, nil},
		{"deliver_observations", post, conns + "/con%2f/observations", holderToken, one, 401, nil},
		{"deliver_observations", post, conns + "//observations", holderToken, one, 401, nil},
		{"deliver_observations", post, conns + "/../observations", holderToken, one, 401, nil},
		{"deliver_observations", post, deliver, holderToken, `{"observations":[` +
			strings.Repeat("1,", 500) + `1]}`, 413, nil},
		{"deliver_observations", post, deliver, holderToken, `{"observations":["` +
			strings.Repeat("x", maxObservationsBody) + `"]}`, 413, nil},
		{"deliver_observations", post, deliver, holderToken, one, 500, fails(errors.New(canaryText))},
		{"deliver_observations", post, deliver, holderToken, one, 503,
			fails(&fault.Error{Code: fault.ServiceUnavailable, RetryAfter: time.Second})},
		{"deliver_observations", post, deliver, holderToken, one, 503, func(f *fake) {
			f.identify = &fault.Error{Code: fault.ServiceUnavailable, RetryAfter: time.Second}
		}},
		{"list_quarantine", get, conns + "/con_1/quarantine?cursor=obs_1", connectorToken, "", 200, nil},
		{"list_quarantine", get, conns + "/con_1/quarantine?cursor=bad", connectorToken, "", 400, nil},
		{"list_quarantine", get, conns + "/con_1/quarantine?cursor=a&cursor=b", connectorToken, "", 400, nil},
		{"list_quarantine", get, conns + "/con_1/quarantine", backendToken, "", 401, nil},
		{"list_quarantine", get, conns + "/con_none/quarantine", connectorToken, "", 404, nil},
		{"replay_quarantined", post, conns + "/con_1/quarantine/obs_1/replay", connectorToken, "", 202, nil},
		{"replay_quarantined", post, conns + "/con_1/quarantine/obs_1/replay", connectorToken,
			"gzip", 400, nil},
		{"replay_quarantined", post, conns + "/con_1/quarantine/obs_1/replay", holderToken, "", 401, nil},
		{"replay_quarantined", post, conns + "/con_none/quarantine/obs_1/replay",
			connectorToken, "", 404, nil},
		{"read_canonical", get, observed + "obs_1/canonical", engineToken, "", 200, nil},
		{"read_canonical", get, observed + "obs_1/canonical", engineToken, "", 200,
			holds(catalog.Product, "product")},
		{"read_canonical", get, observed + "obs_1/canonical", engineToken, "", 200,
			holds(catalog.Category, "category")},
		{"read_canonical", get, observed + "obs_1/canonical", engineToken, "", 200,
			holds(catalog.Order, "order")},
		{"read_canonical", get, observed + "obs_1/canonical", engineToken, "*", 304, nil},
		{"read_canonical", get, observed + "obs_1/canonical", engineToken, "gzip", 400, nil},
		{"read_canonical", get, observed + "obs_1/canonical", connectorToken, "", 401, nil},
		{"read_canonical", get, observed + "obs_none/canonical", engineToken, "", 404, nil},
		{"read_raw", get, observed + "obs_1/raw", engineToken, "", 200, nil},
		{"read_raw", get, observed + "obs_1/raw", engineToken, "*", 304, nil},
		{"read_raw", get, observed + "obs_1/raw", engineToken, "gzip", 400, nil},
		{"read_raw", get, observed + "obs_1/raw", backendToken, "", 401, nil},
		{"read_raw", get, observed + "obs_none/raw", engineToken, "", 404, nil},
		{"rotate_token", post, conns + "/con_1/token", connectorToken, "gzip", 400, nil},
		{"list_keys", get, keys, backendToken, "gzip", 400, nil},
		{"revoke_key", del, keys + "/key_1", backendToken, "gzip", 400, nil},
		{"view_queue", get, inter + "/queue", backendToken, "gzip", 400, nil},
		{"resume_delivery", post, inter + "/resume", connectorToken, "gzip", 400, nil},
	}...)
}

func TestAnswersAreTheDocuments(t *testing.T) {
	t.Parallel()
	doc := document(t)
	open := map[string]bool{}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			for status := range op.Responses.Map() {
				if status != "default" && status != "405" {
					open[op.OperationID+" "+status] = true
				}
			}
		}
	}
	for _, c := range documentedCases() {
		b := newBundle(t, allTokens())
		if c.set != nil {
			c.set(b.fake)
		}
		w := b.call(c.method, c.target, c.token, strings.NewReader(c.body), func(r *http.Request) {
			switch c.body {
			case "gzip":
				r.Header.Set("Content-Encoding", "gzip")
			case "*":
				r.Header.Set("If-None-Match", "*")
			}
		})
		name := fmt.Sprintf("%s %s %d", c.operation, c.target, c.status)
		if w.Code != c.status {
			t.Errorf("%s: status %d, %s", name, w.Code, w.Body)
			continue
		}
		delete(open, fmt.Sprint(c.operation, " ", c.status))
		checkAnswer(t, doc, name, c, w)
		if strings.Contains(b.log.String(), "canary") && c.status != 500 {
			t.Errorf("%s: a canary is in the log: %s", name, b.log)
		}
	}
	for what := range open {
		t.Errorf("documented and never seen in a test: %s", what)
	}
}

// checkAnswer validates an answer against the document, and checks the rules of every answer.
func checkAnswer(t *testing.T, doc *openapi3.T, name string, c documented, w *httptest.ResponseRecorder) {
	t.Helper()
	for path, item := range doc.Paths.Map() {
		op := item.GetOperation(c.method)
		if op == nil || op.OperationID != c.operation {
			continue
		}
		input := &openapi3filter.ResponseValidationInput{
			RequestValidationInput: &openapi3filter.RequestValidationInput{
				Request: httptest.NewRequest(c.method, c.target, nil),
				Route: &routers.Route{Spec: doc, Path: path, PathItem: item,
					Method: c.method, Operation: op},
			},
			Status: w.Code, Header: w.Header(), Body: io.NopCloser(strings.NewReader(w.Body.String())),
			Options: &openapi3filter.Options{IncludeResponseStatus: true},
		}
		if err := openapi3filter.ValidateResponse(context.Background(), input); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	h := w.Header()
	if c.operation == "deliver_observations" && h.Get("Content-Type") != "application/json" {
		t.Errorf("%s: Content-Type %q", name, h.Get("Content-Type"))
	}
	if h.Get("X-Request-Id") == "" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("%s: headers %v", name, h)
	}
	if (h.Get("Content-Type") == "") != (w.Body.Len() == 0) {
		t.Errorf("%s: Content-Type %q with a body of %d bytes", name, h.Get("Content-Type"), w.Body.Len())
	}
	if w.Code >= 400 && strings.Contains(w.Body.String(), "canary") {
		t.Errorf("%s: a canary is in the problem: %s", name, w.Body)
	}
}

func TestDoorsWithoutTokensAreNotMounted(t *testing.T) {
	t.Parallel()
	b := newBundle(t, principal.Tokens{Connectors: "shopify:" + connectorToken})
	b.fake.off = true // no pepper
	b.api = New(b.api.cfg)
	b.fake.off = false
	tokens := []string{"", connectorToken, backendToken, engineToken, holderToken}
	mounted := 0
	for _, r := range (&API{}).table() {
		target := strings.NewReplacer("{connection_id}", "con_1", "{api_key_id}", "key_1",
			"{observation_id}", "obs_1",
			"{bootstrap_run_id}", "bsr_1", "{visitor_id}", "vis_1", "{provider}", "shopify", "{endpoint_id}",
			"whe_1", "{parked_id}", "7").Replace(r.pattern)
		for _, token := range tokens {
			got := b.call(r.method, target, token, nil).Code
			want := []int{http.StatusNotFound}
			if r.role.Admits(principal.Connector) {
				mounted++
				want = []int{200, 201, 202, 204, 400, 401}
			}
			if !slices.Contains(want, got) {
				t.Errorf("%s with token %q: %d", r.operation, token, got)
			}
		}
	}
	if mounted == 0 {
		t.Error("the connector's door is not mounted")
	}
}
