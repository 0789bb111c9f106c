// Package webhook owns operation 12 (spec.md "Deliver a provider webhook"; contract, section 3 "Webhook topic",
// "Webhooks"): whose a notification is, whether the provider signed it, and what it leaves behind: its bytes in the
// archive, and a mark on the entity that it names, with the job that fetches it.
//
//	endpoint ─▶ provider ─▶ signature over the raw bytes ─▶ store ─▶ archive + mark + job, one transaction
//
// An unknown endpoint, another provider's and a wrong signature are answered alike and take the same path: the endpoint is
// looked up, and a signature is computed as often, whatever is known by then. A topic is never believed.
//
// A privacy request (redact, data request) is written down with its job; package privacy executes it.
//
// The package refuses to call a provider, to find doubles (a body that comes again may tell of another change), and to
// log a body.
package webhook

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"storefront.internal/control/internal/appsecret"
	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/settings"
)

// Request is a delivery as it came.
type Request struct {
	Caller     string // the provider of the principal
	Provider   string // of the path, any text
	EndpointID string // of the path, any text
	Signature  string // "" without one
	Body       []byte

	// The optional hints, unsigned.
	Topic, DeliveryID, TriggeredAt string
}

// Endpoint is where a delivery arrived.
type Endpoint struct {
	ID              ident.EndpointID
	ConnectionID    ident.ConnectionID
	App             appsecret.App
	Topic           string // "" of one that takes every topic
	ExternalStoreID string
}

// Delivery is what the store keeps and sets off.
type Delivery struct {
	ID       ident.DeliveryID
	At       time.Time
	Endpoint Endpoint
	Request  *Request
	Kind     provider.Kind
	Key      observation.Key // of Changed and Deleted
	Orders   []string        // of a privacy request: external ids that it names
}

// Store is where deliveries live.
type Store interface {
	// Endpoint returns not_found for one that is not there.
	Endpoint(ctx context.Context, id string) (Endpoint, error)
	// Deliver archives a delivery and sets off what its kind calls for, in one transaction.
	Deliver(ctx context.Context, d *Delivery) error
}

// Secrets are those that a delivery may be signed with.
type Secrets interface {
	Verifying(app appsecret.App, endpoint ident.EndpointID) []settings.Secret
}

// Service is the use case.
type Service struct {
	store    Store
	registry *provider.Registry
	secrets  Secrets
	metrics  *Metrics
	now      func() time.Time
}

// New returns a Service.
func New(store Store, registry *provider.Registry, secrets Secrets, metrics *Metrics, now func() time.Time) *Service {
	return &Service{store: store, registry: registry, secrets: secrets, metrics: metrics, now: now}
}

// tries is how many secrets are tried whoever calls: the most that an endpoint has. dummy stands in for those that it has
// not; nobody signs with it, since a signature by it is not looked at.
const tries = 4

const dummy = settings.Secret("no endpoint has this secret")

// Receive takes a delivery. ping says that it was the provider's unsigned trial of the address, which leaves nothing
// behind. Errors are unauthorized, which says nothing of why, and service_unavailable.
func (s *Service) Receive(ctx context.Context, r *Request) (ping bool, err error) {
	adapter, mounted := s.registry.Adapter(r.Provider)
	if mounted && r.Provider == r.Caller && r.Signature == "" && adapter.Ping(r.Body) {
		s.metrics.deliveries.WithLabelValues(r.Provider, string(provider.Ping)).Inc()
		return true, nil
	}
	at, err := s.store.Endpoint(ctx, r.EndpointID)
	found := err == nil
	if err != nil && !fault.Is(err, fault.NotFound) {
		return false, err
	}
	if !mounted {
		adapter = s.anyAdapter()
	}
	known := found && mounted && r.Provider == r.Caller && r.Provider == at.App.Provider
	if !s.signed(adapter, r, at, known) {
		s.metrics.refused.Inc()
		return false, fault.New(fault.Unauthorized, "")
	}
	d := &Delivery{Endpoint: at, Request: r, At: s.now()}
	d.ID = ident.DeliveryID(ident.RandomAt(ident.Delivery, d.At))
	if !d.read(adapter) {
		s.metrics.refused.Inc()
		return false, fault.New(fault.Unauthorized, "")
	}
	if err := s.store.Deliver(ctx, d); err != nil {
		return false, err
	}
	s.metrics.deliveries.WithLabelValues(r.Provider, string(d.Kind)).Inc()
	return false, nil
}

// anyAdapter verifies for a provider that there is not.
func (s *Service) anyAdapter() provider.Adapter {
	for _, name := range s.registry.Names() {
		if a, ok := s.registry.Adapter(name); ok {
			return a
		}
	}
	return nil
}

// signed verifies with as many secrets whether the endpoint is known or not.
func (s *Service) signed(adapter provider.Adapter, r *Request, at Endpoint, known bool) bool {
	if adapter == nil {
		return false
	}
	own := s.secrets.Verifying(at.App, at.ID)
	if !known {
		own = nil
	}
	all := append(make([]settings.Secret, 0, tries), own...)
	for len(all) < tries {
		if len(own) > 0 {
			all = append(all, own[0])
		} else {
			all = append(all, dummy)
		}
	}
	return adapter.Verify(all, r.Signature, r.Body) && len(own) > 0
}

// read says what the delivery is about, and whether it is of the endpoint's store: one secret signs for every store of an
// app. What cannot be read, or names an entity that cannot be, says that something changed.
func (d *Delivery) read(adapter provider.Adapter) (ours bool) {
	hint := d.Endpoint.Topic
	if hint == "" {
		hint = d.Request.Topic
	}
	t, err := adapter.Topic(hint, d.Request.Body)
	if err != nil {
		d.Kind = provider.Unclear
		return true
	}
	if t.ExternalStoreID != "" && t.ExternalStoreID != d.Endpoint.ExternalStoreID {
		return false
	}
	d.Kind = t.Kind
	for _, id := range t.Orders {
		if fetchable(observation.Key{Entity: catalog.Order, ExternalID: id}) {
			d.Orders = append(d.Orders, id)
		}
	}
	if t.Kind == provider.Changed || t.Kind == provider.Deleted {
		d.Key = observation.Key{Entity: t.Entity, ExternalID: t.ExternalID}
		if !fetchable(d.Key) {
			d.Kind, d.Key = provider.Unclear, observation.Key{}
		}
	}
	return true
}

func fetchable(k observation.Key) bool {
	_, ok := catalog.ParseEntity(string(k.Entity))
	return ok && k.ExternalID != "" && utf8.ValidString(k.ExternalID) && !strings.Contains(k.ExternalID, "\x00") &&
		utf8.RuneCountInString(k.ExternalID) <= catalog.MaxExternalID
}
