// Package privacy owns what providers ask about people's data (spec.md "Deliver a provider webhook"; ADR 10): a request that
// arrived by operation 12 is executed here, by a job, and may be begun again at any time.
//
//	redact_customer ─▶ the orders that it names, and every order in which the customer's e-mail, phone, identification or
//	                   id stands ─▶ the archived notifications that tell of them ─▶ the orders themselves, redacted ─▶
//	                   every other notification in which the customer stands ─▶ the request's own body
//	redact_store    ─▶ every order ─▶ everybody's visitor, client and audit data ─▶ every notification
//	data_request    ─▶ a task of an operator: the row stays open until `control privacy done` ends it
//
// A redacted order has no snapshot any more, its document no buyer, and what is fetched of it later is not archived. Who
// bought it is a visitor of signals only by the order's id: the relay erases whoever's purchase names it.
//
// The package refuses to log or measure anything but ids of ours, and to tell a provider that it is done: none asks.
package privacy

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// Request is one that is not completed.
type Request struct {
	ID           ident.DeliveryID
	ConnectionID ident.ConnectionID
	Provider     string
	Kind         provider.Kind
	Orders       []string // external ids that it names
	ReceivedAt   time.Time
	Hint         string // the topic with which it came
	Body         []byte // as the provider sent it; empty when another request took it away
}

// Store is where requests and what they are about lie. Each method is one transaction and may be repeated.
type Store interface {
	// Request returns not_found for one that is not there or is completed.
	Request(ctx context.Context, id ident.DeliveryID) (Request, error)
	// OrdersWith returns a page of the connection's orders behind from: those in which one of the texts stands, whatever its
	// case, or all when texts is nil. next is "" behind the last page.
	OrdersWith(ctx context.Context, c ident.ConnectionID, texts []string, from string, limit int) (orders []string, next string, err error)
	// Redact takes the buyers out of orders, and asks for the erasure of the visitors who bought them.
	Redact(ctx context.Context, r *Request, orders []string) error
	// ForgetEverybody asks for the erasure of all visitors of the request's connection.
	ForgetEverybody(ctx context.Context, r *Request) error
	// ForgetDeliveries takes away the bodies of notifications in which one of the texts stands, by pages, as OrdersWith.
	ForgetDeliveries(ctx context.Context, r *Request, texts []string, from ident.DeliveryID, limit int) (next ident.DeliveryID, err error)
	// Complete ends a request and takes its own body away.
	Complete(ctx context.Context, r *Request) error
}

// How much a transaction does.
const (
	pageOfOrders     = 100
	pageOfDeliveries = 500
)

// Service executes requests.
type Service struct {
	store    Store
	registry *provider.Registry
	logger   *slog.Logger
}

// New returns a Service.
func New(store Store, registry *provider.Registry, logger *slog.Logger) *Service {
	return &Service{store: store, registry: registry, logger: logger}
}

// Execute does what a request asks.
func (s *Service) Execute(ctx context.Context, id ident.DeliveryID) error {
	r, err := s.store.Request(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	log := s.logger.With("privacy_request_id", r.ID, "connection_id", r.ConnectionID, "kind", string(r.Kind), "orders", len(r.Orders))
	switch r.Kind {
	case provider.RedactCustomer:
		err = s.customer(ctx, &r)
	case provider.RedactStore:
		err = s.shop(ctx, &r)
	default:
		log.Warn("a shopper's data is asked for: an operator answers the merchant, and then ends the request by control privacy done")
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.store.Complete(ctx, &r); err != nil {
		return err
	}
	log.Info("a privacy request is completed")
	return nil
}

func (s *Service) customer(ctx context.Context, r *Request) error {
	who, err := s.whom(r)
	if err != nil {
		return err
	}
	if err := s.tellNoMore(ctx, r, r.Orders); err != nil {
		return err
	}
	if texts := append(who.texts(), who.inDocuments()...); len(texts) > 0 {
		if err := s.search(ctx, r, texts, s.tellNoMore); err != nil {
			return err
		}
	}
	if texts := who.texts(); len(texts) > 0 {
		return s.deliveries(ctx, r, texts)
	}
	return nil
}

func (s *Service) shop(ctx context.Context, r *Request) error {
	if err := s.store.ForgetEverybody(ctx, r); err != nil {
		return err
	}
	if err := s.search(ctx, r, nil, s.redact); err != nil {
		return err
	}
	return s.deliveries(ctx, r, nil)
}

// search hands on the orders in which one of the texts stands, all for nil.
func (s *Service) search(ctx context.Context, r *Request, texts []string, to func(context.Context, *Request, []string) error) error {
	for from := ""; ; {
		orders, next, err := s.store.OrdersWith(ctx, r.ConnectionID, texts, from, pageOfOrders)
		if err != nil {
			return err
		}
		if err := to(ctx, r, orders); err != nil || next == "" {
			return err
		}
		from = next
	}
}

// tellNoMore takes away the notifications that tell of orders, and then redacts these: a request that begins anew finds by its
// texts only those that are not redacted.
func (s *Service) tellNoMore(ctx context.Context, r *Request, orders []string) error {
	if len(orders) == 0 {
		return nil
	}
	var texts []string
	for _, id := range orders {
		texts = append(texts, inNotifications(id)...)
	}
	if err := s.deliveries(ctx, r, texts); err != nil {
		return err
	}
	return s.redact(ctx, r, orders)
}

func (s *Service) redact(ctx context.Context, r *Request, orders []string) error {
	for some := range slices.Chunk(orders, pageOfOrders) {
		if err := s.store.Redact(ctx, r, some); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) deliveries(ctx context.Context, r *Request, texts []string) error {
	for from := ident.DeliveryID(""); ; {
		next, err := s.store.ForgetDeliveries(ctx, r, texts, from, pageOfDeliveries)
		if err != nil || next == "" {
			return err
		}
		from = next
	}
}

// whom reads again whom a request is about; only its body says it.
func (s *Service) whom(r *Request) (customer, error) {
	if len(r.Body) == 0 {
		return customer{}, nil
	}
	adapter, mounted := s.registry.Adapter(r.Provider)
	if !mounted {
		return customer{}, fmt.Errorf("provider %s is not mounted", r.Provider)
	}
	t, err := adapter.Topic(r.Hint, r.Body)
	if err != nil || t.Kind != provider.RedactCustomer {
		return customer{}, fmt.Errorf("privacy request %s reads as %q", r.ID, t.Kind) // the error of a body may quote it
	}
	return customer(t.Customer), nil
}

// customer is personal data.
type customer provider.Customer

// Texts that are shorter stand in too much that is nobody's.
const leastText = 6

// texts are what stands wherever this customer's data does, in lower case.
func (c customer) texts() (all []string) {
	if len(c.Email) >= leastText && strings.Contains(c.Email, "@") {
		all = append(all, strings.ToLower(c.Email))
	}
	for _, number := range []string{c.Phone, c.Identification} {
		if len(number) >= leastText {
			all = append(all, `"`+strings.ToLower(number)+`"`)
		}
	}
	return all
}

// inDocuments is what stands in our documents of this customer's orders: nothing else in one is called id.
func (c customer) inDocuments() []string {
	if c.ID == "" {
		return nil
	}
	return []string{`"id":"` + strings.ToLower(c.ID) + `"`}
}

// inNotifications is what stands in the notifications of an order, as providers write it.
func inNotifications(order string) []string {
	var all []string
	for _, head := range []string{`"id":`, `"id": `} {
		all = append(all, head+order+",", head+order+"}", head+`"`+strings.ToLower(order)+`"`)
	}
	return all
}
