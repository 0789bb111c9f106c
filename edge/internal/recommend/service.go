package recommend

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"storefront.internal/edge/internal/intake"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// Request is what the transport hands over. The body is not kept.
type Request struct {
	ConnectionID ident.ConnectionID
	StoreID      ident.StoreID
	Body         []byte
	Traceparent  string // passed on to the engine; may be empty
}

// CartLine is a line of the shopper's cart.
type CartLine struct {
	ItemID    ident.ItemID    `json:"item_id"`
	VariantID ident.VariantID `json:"variant_id,omitempty"`
	Quantity  int             `json:"quantity"`
}

// Question is what the engine is asked (contract, section 4).
type Question struct {
	ConnectionID ident.ConnectionID `json:"connection_id"`
	StoreID      ident.StoreID      `json:"store_id"`
	DecisionID   ident.DecisionID   `json:"decision_id"`
	Placement    string             `json:"placement"`
	ItemID       ident.ItemID       `json:"item_id,omitempty"`
	Visitor      *signal.Visitor    `json:"visitor,omitempty"`
	Client       json.RawMessage    `json:"client,omitempty"`
	Cart         []CartLine         `json:"cart,omitempty"`
	Limit        int                `json:"limit"`

	Traceparent string `json:"-"`
}

// Pick is one recommended product.
type Pick struct {
	ItemID    ident.ItemID
	VariantID ident.VariantID
}

// Proposal is the engine's answer: its picks, best first, and its own ids, an object, or nil.
type Proposal struct {
	Picks     []Pick
	EngineIDs json.RawMessage
}

// Engine answers questions. It obeys the context's deadline.
type Engine interface {
	Recommend(ctx context.Context, q *Question) (Proposal, error)
}

// Fallback picks products without the engine: a connection's sellable ones, most recently refreshed first.
type Fallback interface {
	Picks(ctx context.Context, c ident.ConnectionID, limit int) ([]Pick, error)
}

// Catalog knows which items are a connection's. It answers false only for an item that it is sure about.
type Catalog interface {
	Belong(ctx context.Context, c ident.ConnectionID, items []ident.ItemID) []bool
}

// Minter makes Decision ids that prove themselves.
type Minter interface {
	Mint(c ident.ConnectionID, now time.Time) ident.DecisionID
}

// Recorder passes a Decision on to be stored. It never blocks and reports its failures by itself.
type Recorder interface {
	Record(d *signal.Decision)
}

// Config is what a Service needs. A nil Engine means that none is configured, a nil Fallback that there is nothing to
// fall back on, a nil Catalog that the engine's items are believed.
type Config struct {
	Engine   Engine
	Fallback Fallback
	Catalog  Catalog
	Minter   Minter
	Recorder Recorder
	Metrics  *Metrics
	Logger   *slog.Logger
	Now      func() time.Time
	Deadline time.Duration // of the engine; default 150 ms
}

// Service is operation E1. It may be used by many goroutines.
type Service struct {
	engine   Engine
	fallback Fallback
	catalog  Catalog
	minter   Minter
	recorder Recorder
	metrics  *Metrics
	log      *slog.Logger
	now      func() time.Time
	deadline time.Duration
	breaker  breaker
	shoppers *intake.ShopperReader
}

// New returns a service.
func New(c Config) *Service {
	if c.Deadline <= 0 {
		c.Deadline = 150 * time.Millisecond
	}
	return &Service{engine: c.Engine, fallback: c.Fallback, catalog: c.Catalog, minter: c.Minter, recorder: c.Recorder, metrics: c.Metrics,
		log: c.Logger, now: c.Now, deadline: c.Deadline, breaker: breaker{now: c.Now}, shoppers: intake.NewShopperReader()}
}

// The values of an answer's source.
const (
	fromEngine   = "engine"
	fromFallback = "fallback"
)

// Recommend answers a request. Its only error is the fault invalid_request.
func (s *Service) Recommend(ctx context.Context, req Request) (*Answer, error) {
	in, err := s.decode(req.Body)
	if err != nil {
		return nil, err
	}
	s.noteDiscards(&req, in.shopper)
	now := s.now().UTC().Truncate(time.Microsecond)
	q := &Question{ConnectionID: req.ConnectionID, StoreID: req.StoreID, DecisionID: s.minter.Mint(req.ConnectionID, now),
		Placement: in.placement, ItemID: in.itemID, Visitor: in.shopper.Visitor, Client: in.shopper.Client, Cart: in.cart,
		Limit: in.limit, Traceparent: req.Traceparent}
	d := &signal.Decision{DecisionID: q.DecisionID, ConnectionID: q.ConnectionID, StoreID: q.StoreID, Placement: q.Placement,
		Source: fromEngine, ServedAt: now, Visitor: q.Visitor}
	proposal, ok := s.askEngine(ctx, q)
	if ok {
		proposed := len(proposal.Picks)
		proposal.Picks = s.ownPicks(ctx, q, proposal.Picks)
		ok = len(proposal.Picks) > 0 || proposed == 0 // an engine that knows only others' items has failed; one may have none
	}
	if !ok {
		d.Source = fromFallback
		proposal = Proposal{Picks: s.fallBack(ctx, q)}
	}
	d.Items, d.EngineIDs = positions(proposal.Picks, in.limit), proposal.EngineIDs
	s.metrics.served.WithLabelValues(d.Source).Inc()
	s.recorder.Record(d)
	return &Answer{DecisionID: d.DecisionID, Placement: d.Placement, ServedAt: d.ServedAt, Source: d.Source, Items: d.Items}, nil
}

// askEngine asks within the deadline, unless the breaker says that asking is of no use.
func (s *Service) askEngine(ctx context.Context, q *Question) (Proposal, bool) {
	if s.engine == nil {
		s.metrics.asked.WithLabelValues("off").Inc()
		return Proposal{}, false
	}
	if !s.breaker.allow() {
		s.metrics.asked.WithLabelValues("open").Inc()
		return Proposal{}, false
	}
	ok := false
	defer func() { s.breaker.report(ok) }()
	ctx, cancel := context.WithTimeout(ctx, s.deadline)
	defer cancel()
	began := s.now()
	proposal, err := s.engine.Recommend(ctx, q)
	s.metrics.duration.Observe(s.now().Sub(began).Seconds())
	switch {
	case err == nil:
		ok = true
		s.metrics.asked.WithLabelValues("answered").Inc()
		return proposal, true
	case errors.Is(err, context.DeadlineExceeded):
		s.metrics.asked.WithLabelValues("late").Inc()
	default:
		s.metrics.asked.WithLabelValues("failed").Inc()
	}
	s.log.Debug("engine did not recommend", slog.Any("error", err))
	return Proposal{}, false
}

// ownPicks leaves out of an engine's answer what is not the connection's (contract, section 2 "Decisions").
func (s *Service) ownPicks(ctx context.Context, q *Question, picks []Pick) []Pick {
	if s.catalog == nil || len(picks) == 0 {
		return picks
	}
	items := make([]ident.ItemID, len(picks))
	for i, p := range picks {
		items[i] = p.ItemID
	}
	own := make([]Pick, 0, len(picks))
	for i, belongs := range s.catalog.Belong(ctx, q.ConnectionID, items) {
		if belongs {
			own = append(own, picks[i])
		}
	}
	if left := len(picks) - len(own); left > 0 {
		s.metrics.leftOut.Add(float64(left))
	}
	return own
}

func (s *Service) fallBack(ctx context.Context, q *Question) []Pick {
	if s.fallback == nil {
		return nil
	}
	picks, err := s.fallback.Picks(ctx, q.ConnectionID, q.Limit)
	if err != nil {
		s.metrics.fallbackFailures.Inc()
		s.log.Warn("fallback failed", slog.Any("error", err))
		return nil
	}
	return picks
}

// noteDiscards records the warning for a discarded field: its name, never its value.
func (s *Service) noteDiscards(req *Request, shopper intake.Shopper) {
	for field, discarded := range map[string]bool{"visitor": shopper.DiscardedVisitor, "client": shopper.DiscardedClient} {
		if discarded {
			s.metrics.discarded.WithLabelValues(field).Inc()
			s.log.Warn("malformed field discarded from a recommendation request", slog.String("field", field),
				slog.String("connection_id", string(req.ConnectionID)))
		}
	}
}

func positions(picks []Pick, limit int) []signal.DecisionItem {
	picks = picks[:min(len(picks), limit)]
	items := make([]signal.DecisionItem, len(picks))
	for i, p := range picks {
		items[i] = signal.DecisionItem{Position: i, ItemID: p.ItemID, VariantID: p.VariantID}
	}
	return items
}
