// Package privacy owns the execution of requests about personal data that providers send as webhooks. A job
// executes a request, and may begin again at any time.
//
//	redact_customer ─▶ the orders that it names, and the archived webhooks about them
//	                   ─▶ every other order with the customer's e-mail, phone, identification or id
//	                      (many: the request waits until `control privacy approve` or `refuse`),
//	                      the archived webhooks about them, and those that contain the customer
//	                   ─▶ the request's own body
//	redact_store    ─▶ every order ─▶ the visitor, client and audit data of all visitors ─▶ every webhook
//	data_request    ─▶ a task of an operator: the row stays open until `control privacy done` ends it
//
// A redacted order has no snapshot, its document has no buyer, and later fetches of it are not archived. Its
// buyer is a visitor of signals only through the order's id: the relay erases the visitors whose purchase
// names it. Logs and metrics contain only ids of ours.
package privacy

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// Request is a request that is not completed.
type Request struct {
	ID           ident.WebhookEventID
	ConnectionID ident.ConnectionID
	Provider     string
	Kind         provider.EventKind
	Orders       []string // external ids
	ReceivedAt   time.Time
	Hint         string // topic of the webhook
	Body         []byte // as the provider sent it; empty when another request removed it

	// Matches is how many orders match beyond those that the request names, when these are so many that
	// the request is held until an operator approves or refuses it; 0 for a request that is not held.
	Matches  int
	Approved bool // an operator approved the held request

	Progress Progress
}

// Progress is how far a request is. It is saved after each page, since a job is cut off after minutes and a
// large shop has more to search than that.
type Progress struct {
	Step   Step     `json:"step"`
	After  string   `json:"after,omitempty"`  // the last id of the step's last page
	Orders []string `json:"orders,omitempty"` // those that match so far
	Read   int      `json:"read,omitempty"`   // orders searched so far
}

// Step is a step of a request.
type Step int

// The steps, in their order. Stored requests have these numbers.
const (
	StepNamed    Step = iota // the orders that the request names; of a shop, the erasure of its visitors
	StepOrders               // searching orders; of a shop, redacting them
	StepWebhooks             // removing bodies of webhooks
	StepRedact               // redacting the orders that were found
)

// Store is where requests and personal data are stored. Each method is one transaction and may be repeated.
type Store interface {
	// Request returns not_found for a request that does not exist or is completed.
	Request(ctx context.Context, id ident.WebhookEventID) (Request, error)
	// FindOrders reads a page of the connection's orders after an id and returns those that match, or all
	// when the matcher is nil.
	FindOrders(ctx context.Context, c ident.ConnectionID, m *Matcher, after string, limit int) (OrderPage,
		error)
	// Hold makes a request wait for an operator.
	Hold(ctx context.Context, r *Request, matches int) error
	// RedactOrders removes the buyers from orders, and requests the erasure of the visitors who bought them.
	RedactOrders(ctx context.Context, r *Request, orders []string) error
	// RequestConnectionErasure requests the erasure of all visitors of the request's connection.
	RequestConnectionErasure(ctx context.Context, r *Request) error
	// RemoveWebhookBodies removes the bodies of webhooks that match, by pages, as FindOrders.
	RemoveWebhookBodies(ctx context.Context, r *Request, m *Matcher, after ident.WebhookEventID,
		limit int) (next ident.WebhookEventID, err error)
	// SaveProgress saves the progress of a request.
	SaveProgress(ctx context.Context, r *Request) error
	// Complete completes a request and removes its own body.
	Complete(ctx context.Context, r *Request) error
}

// OrderPage is what was found in a page of orders.
type OrderPage struct {
	Orders []string // external ids of those that match
	Read   int      // how many orders the page has
	Next   string   // "" after the last page
}

// A redaction cannot be undone, and the address in a request is what somebody typed at a checkout. So when
// more orders match than one customer plausibly has, an operator decides. 50 orders are a weekly customer's
// of a year; in a large shop, a buyer on account or a marketplace's relay address has more, but not a
// twentieth of all.
const (
	unattendedMatches = 50
	unattendedShare   = 20
)

// How many rows one transaction handles.
const (
	ordersPageSize   = 100
	webhooksPageSize = 500
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

// Execute executes a request.
func (s *Service) Execute(ctx context.Context, id ident.WebhookEventID) error {
	r, err := s.store.Request(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	log := s.logger.With("privacy_request_id", r.ID, "connection_id", r.ConnectionID, "kind", string(r.Kind),
		"orders", len(r.Orders))
	switch r.Kind {
	case provider.RedactCustomer:
		err = s.redactCustomer(ctx, &r)
	case provider.RedactShop:
		err = s.redactShop(ctx, &r)
	default:
		log.Warn("a shopper's data is requested: an operator answers the merchant and then runs control " +
			"privacy done")
		return nil
	}
	if err != nil {
		return err
	}
	if r.held() {
		log.Warn("a redaction matches many orders beyond those that it names: an operator runs control "+
			"privacy approve or control privacy refuse", "matches", r.Matches)
		return nil
	}
	if err := s.store.Complete(ctx, &r); err != nil {
		return err
	}
	log.Info("a privacy request is completed")
	return nil
}

// held reports whether a request waits for an operator.
func (r *Request) held() bool { return r.Matches > 0 && !r.Approved }

// redactCustomer removes the webhooks about an order before it redacts the order. The sequence matters: a
// request that begins again finds by its customer only orders that are not redacted.
func (s *Service) redactCustomer(ctx context.Context, r *Request) error {
	if r.held() {
		return nil
	}
	who, err := s.readCustomer(r)
	if err != nil {
		return err
	}
	p := &r.Progress
	if p.Step == StepNamed {
		if err := s.redactNamed(ctx, r); err != nil {
			return err
		}
		*p = Progress{Step: StepOrders}
	}
	m := newMatcher(who)
	if m.empty() {
		return nil
	}
	if p.Step == StepOrders {
		if err := s.findOrders(ctx, r, m); err != nil {
			return err
		}
		if !r.Approved && len(p.Orders) > max(unattendedMatches, p.Read/unattendedShare) {
			r.Matches = len(p.Orders)
			return s.store.Hold(ctx, r, r.Matches)
		}
		*p = Progress{Step: StepWebhooks, Orders: p.Orders}
	}
	if p.Step == StepWebhooks {
		m.addOrders(p.Orders)
		if err := s.removeWebhookBodies(ctx, r, m); err != nil {
			return err
		}
		*p = Progress{Step: StepRedact, Orders: p.Orders}
		if err := s.store.SaveProgress(ctx, r); err != nil {
			return err
		}
	}
	return s.redact(ctx, r, p.Orders)
}

// redactNamed redacts the orders that the request names.
func (s *Service) redactNamed(ctx context.Context, r *Request) error {
	if len(r.Orders) == 0 {
		return nil
	}
	named := newMatcher(customer{})
	named.addOrders(r.Orders)
	if err := s.removeWebhookBodies(ctx, r, named); err != nil {
		return err
	}
	return s.redact(ctx, r, r.Orders)
}

// findOrders adds to the progress the connection's orders that match, and how many orders it has.
func (s *Service) findOrders(ctx context.Context, r *Request, m *Matcher) error {
	p := &r.Progress
	for {
		page, err := s.store.FindOrders(ctx, r.ConnectionID, m, p.After, ordersPageSize)
		if err != nil {
			return err
		}
		p.Orders, p.Read, p.After = append(p.Orders, page.Orders...), p.Read+page.Read, page.Next
		if p.After == "" {
			return nil
		}
		if err := s.store.SaveProgress(ctx, r); err != nil {
			return err
		}
	}
}

func (s *Service) redactShop(ctx context.Context, r *Request) error {
	p := &r.Progress
	if p.Step == StepNamed {
		if err := s.store.RequestConnectionErasure(ctx, r); err != nil {
			return err
		}
		*p = Progress{Step: StepOrders}
	}
	for p.Step == StepOrders {
		page, err := s.store.FindOrders(ctx, r.ConnectionID, nil, p.After, ordersPageSize)
		if err != nil {
			return err
		}
		if err := s.redact(ctx, r, page.Orders); err != nil {
			return err
		}
		if p.After = page.Next; p.After == "" {
			p.Step = StepWebhooks
		}
		if err := s.store.SaveProgress(ctx, r); err != nil {
			return err
		}
	}
	return s.removeWebhookBodies(ctx, r, nil)
}

func (s *Service) redact(ctx context.Context, r *Request, orders []string) error {
	for some := range slices.Chunk(orders, ordersPageSize) {
		if err := s.store.RedactOrders(ctx, r, some); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) removeWebhookBodies(ctx context.Context, r *Request, m *Matcher) error {
	for {
		next, err := s.store.RemoveWebhookBodies(ctx, r, m, ident.WebhookEventID(r.Progress.After),
			webhooksPageSize)
		if err != nil || next == "" {
			return err
		}
		r.Progress.After = string(next)
		if err := s.store.SaveProgress(ctx, r); err != nil {
			return err
		}
	}
}

// readCustomer reads the customer from the body of the request; nothing else names the customer.
func (s *Service) readCustomer(r *Request) (customer, error) {
	if len(r.Body) == 0 {
		return customer{}, nil
	}
	adapter, mounted := s.registry.Adapter(r.Provider)
	if !mounted {
		return customer{}, fmt.Errorf("provider %s is not mounted", r.Provider)
	}
	t, err := adapter.ParseWebhook(r.Hint, r.Body)
	if err != nil || t.Kind != provider.RedactCustomer {
		// the error may quote the body
		return customer{}, fmt.Errorf("privacy request %s reads as %q", r.ID, t.Kind)
	}
	return customer(t.Customer), nil
}

// customer is personal data.
type customer provider.Customer
