package engine_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"storefront.internal/engine-relay/internal/engine"
	"storefront.internal/shared/deliveries"
)

const document = "../../engine.openapi.yaml"

func router(t *testing.T) routers.Router {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile(document)
	if err != nil {
		t.Fatal(err)
	}
	doc.Servers = nil // any host
	if err := doc.Validate(context.Background()); err != nil {
		t.Fatal(err)
	}
	r, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	openapi3filter.RegisterBodyDecoder("application/cloudevents-batch+json", openapi3filter.JSONBodyDecoder)
	return r
}

const fullInteraction = `{"signal_id":"sig_1","connection_id":"con_1","store_id":"str_1","type":"add_to_cart",` +
	`"occurred_at":"2026-01-02T03:04:05.000006Z","received_at":"2026-01-02T03:04:06Z","decision_id":"dec_1","item_id":"itm_1",` +
	`"variant_id":"var_1","position":3,"quantity":2,"visitor":{"visitor_id":"vis_1","session_id":"ses_1"},` +
	`"cart_line":{"item_id":"itm_1","variant_id":"var_1","quantity":2,"revision":1},"engine_ids":{"run":["a",1]}}`

const fullEvent = `{"specversion":"1.0","id":"obs_1","source":"storefront","type":"storefront.entity.observed.v1","data":` +
	`{"observation_id":"obs_1","connection_id":"con_1","store_id":"str_1","provider":"custom","entity":"product","external_id":"p1",` +
	`"revision":1,"operation":"delete","content_digest":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","snapshot":"canonical"}}`

// TestRequestsFitTheDocument sends through the client and validates what arrives.
func TestRequestsFitTheDocument(t *testing.T) {
	t.Parallel()
	r := router(t)
	var fault error
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		fault = validate(r, req)
		w.WriteHeader(http.StatusAccepted)
	}))
	defer srv.Close()
	c, err := engine.New(engine.Config{URL: srv.URL, Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	send := func(k deliveries.Kind, bodies ...string) error {
		fault = nil
		if reply := c.Send(context.Background(), k, raw(bodies...)); reply.Status != http.StatusAccepted {
			t.Fatalf("%+v", reply)
		}
		return fault
	}
	if err := send(deliveries.Interaction, fullInteraction, fullInteraction); err != nil {
		t.Errorf("interactions: %v", err)
	}
	if err := send(deliveries.Envelope, fullEvent, fullEvent); err != nil {
		t.Errorf("observations: %v", err)
	}
	// The validation is one that can fail.
	if send(deliveries.Interaction, `{"signal_id":"sig_1"}`) == nil ||
		send(deliveries.Envelope, `{"specversion":"1.0"}`) == nil {
		t.Error("the document takes anything")
	}
}

func validate(r routers.Router, req *http.Request) error {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	route, params, err := r.FindRoute(req)
	if err != nil {
		return err
	}
	return openapi3filter.ValidateRequest(req.Context(), &openapi3filter.RequestValidationInput{
		Request: req, PathParams: params, Route: route,
		Options: &openapi3filter.Options{
			AuthenticationFunc: func(context.Context, *openapi3filter.AuthenticationInput) error {
				if req.Header.Get("Authorization") != "Bearer secret" {
					return http.ErrNoCookie
				}
				return nil
			},
		},
	})
}

func raw(bodies ...string) [][]byte {
	var out [][]byte
	for _, b := range bodies {
		out = append(out, []byte(b))
	}
	return out
}
