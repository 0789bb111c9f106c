// Package webhook owns webhooks of providers: it finds the endpoint, verifies the signature, and stores the
// event with what follows from it.
//
//	endpoint ─▶ provider ─▶ signature over the raw bytes ─▶ store ─▶ archive + mark + job, one transaction
//
// An unknown endpoint, a foreign one and a wrong signature have the same answer and take the same time: the
// endpoint is looked up, and the same number of signatures is computed, in every case. The content of a
// webhook is not used: it marks its entity, and a job fetches that. A privacy request is stored with its job;
// package privacy executes it. Repeated webhooks are not detected, since equal bytes may tell of another
// change. Bodies are never logged.
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

// MaxBody is the largest body that a provider may send, in bytes.
const MaxBody = 5 << 20

// Request is a webhook as it came.
type Request struct {
	Caller     string // provider of the caller
	Provider   string // from the path, any text
	EndpointID string // from the path, any text
	Signature  string // "" without one
	Body       []byte

	// The optional headers, which no signature covers.
	Topic, ProviderEventID, TriggeredAt string
}

// Endpoint is where a webhook arrived.
type Endpoint struct {
	ID              ident.EndpointID
	ConnectionID    ident.ConnectionID
	App             appsecret.App
	Topic           string // "" for every topic
	ExternalStoreID string
	Disabled        bool // the connection is: nothing is fetched for it
}

// Event is a webhook as it is stored.
type Event struct {
	ID       ident.WebhookEventID
	At       time.Time
	Endpoint Endpoint
	Request  *Request
	Body     []byte // what is archived of the request's
	Kind     provider.EventKind
	Key      observation.Key // of Changed and Deleted
	Orders   []string        // external ids in a privacy request
}

// Store is where events are stored.
type Store interface {
	// Endpoint returns not_found for an endpoint that does not exist.
	Endpoint(ctx context.Context, id string) (Endpoint, error)
	// SaveEvent archives an event and enqueues what its kind calls for, in one transaction.
	SaveEvent(ctx context.Context, d *Event) error
}

// Service receives webhooks.
type Service struct {
	store    Store
	registry *provider.Registry
	secrets  *appsecret.Keyring
	metrics  *Metrics
	now      func() time.Time
	quotas   *quotas
}

// New returns a Service. The quota is that of an endpoint.
func New(store Store, registry *provider.Registry, secrets *appsecret.Keyring, metrics *Metrics,
	now func() time.Time, quota Quota) *Service {
	return &Service{store: store, registry: registry, secrets: secrets, metrics: metrics, now: now,
		quotas: newQuotas(quota, now)}
}

// maxSecrets is how many secrets are tried in every case: the most that an endpoint has. dummySecret fills up
// for endpoints with fewer; a signature made with it is not accepted.
const maxSecrets = 4

const dummySecret = settings.Secret("no endpoint has this secret")

// Receive verifies and stores a webhook. ping says that it was the provider's unsigned test of the address,
// which is not stored. Its errors are unauthorized, without a reason, rate_limited, and service_unavailable.
func (s *Service) Receive(ctx context.Context, r *Request) (ping bool, err error) {
	adapter, mounted := s.registry.Adapter(r.Provider)
	if mounted && r.Provider == r.Caller && r.Signature == "" && adapter.IsPing(r.Body) {
		s.metrics.accepted.WithLabelValues(r.Provider, string(provider.Ping)).Inc()
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
	if !s.verify(adapter, r, at, known) {
		s.metrics.rejected.Inc()
		return false, fault.New(fault.Unauthorized, "")
	}
	d := &Event{Endpoint: at, Request: r, At: s.now()}
	d.ID = ident.WebhookEventID(ident.RandomAt(ident.WebhookEvent, d.At))
	if !d.classify(adapter) {
		s.metrics.rejected.Inc()
		return false, fault.New(fault.Unauthorized, "")
	}
	if err := s.quotas.take(at.ID, len(r.Body)); err != nil {
		s.metrics.limited.Inc()
		return false, err
	}
	d.keepBody()
	if err := s.store.SaveEvent(ctx, d); err != nil {
		return false, err
	}
	s.metrics.accepted.WithLabelValues(r.Provider, string(d.Kind)).Inc()
	return false, nil
}

// maxArchived is the largest body that is archived of an event that is neither about an order nor about
// personal data.
const maxArchived = 256 << 10

// keepBody decides whether the body is archived.
func (d *Event) keepBody() {
	if len(d.Request.Body) <= maxArchived || d.Key.Entity == catalog.Order || d.Kind.IsPrivacy() {
		d.Body = d.Request.Body
	}
}

// anyAdapter returns an adapter that verifies for an unknown provider.
func (s *Service) anyAdapter() provider.Adapter {
	for _, name := range s.registry.Names() {
		if a, ok := s.registry.Adapter(name); ok {
			return a
		}
	}
	return nil
}

// verify computes the same number of signatures whether the endpoint is known or not.
func (s *Service) verify(adapter provider.Adapter, r *Request, at Endpoint, known bool) bool {
	if adapter == nil {
		return false
	}
	own := s.secrets.VerificationSecrets(at.App, at.ID)
	if !known {
		own = nil
	}
	all := append(make([]settings.Secret, 0, maxSecrets), own...)
	for len(all) < maxSecrets {
		if len(own) > 0 {
			all = append(all, own[0])
		} else {
			all = append(all, dummySecret)
		}
	}
	return adapter.VerifySignature(all, r.Signature, r.Body) && len(own) > 0
}

// classify reads what the event is about. It reports whether the event is of the endpoint's store, since one
// secret signs for every store of an app. An event that cannot be read, or names an impossible entity, or
// asks about personal data of no named store, is Unspecified.
func (d *Event) classify(adapter provider.Adapter) (ours bool) {
	hint := d.Endpoint.Topic
	if hint == "" {
		hint = d.Request.Topic
	}
	t, err := adapter.ParseWebhook(hint, d.Request.Body)
	if err != nil {
		d.Kind = provider.Unspecified
		return true
	}
	if t.ExternalStoreID != "" && t.ExternalStoreID != d.Endpoint.ExternalStoreID {
		return false
	}
	d.Kind = t.Kind
	if t.Kind.IsPrivacy() && t.ExternalStoreID == "" {
		d.Kind = provider.Unspecified
		return true
	}
	for _, id := range t.Orders {
		if validKey(observation.Key{Entity: catalog.Order, ExternalID: id}) {
			d.Orders = append(d.Orders, id)
		}
	}
	if t.Kind == provider.Changed || t.Kind == provider.Deleted {
		d.Key = observation.Key{Entity: t.Entity, ExternalID: t.ExternalID}
		if !validKey(d.Key) {
			d.Kind, d.Key = provider.Unspecified, observation.Key{}
		}
	}
	return true
}

func validKey(k observation.Key) bool {
	_, ok := catalog.ParseEntity(string(k.Entity))
	return ok && k.ExternalID != "" && utf8.ValidString(k.ExternalID) &&
		!strings.Contains(k.ExternalID, "\x00") &&
		utf8.RuneCountInString(k.ExternalID) <= catalog.MaxExternalID
}
