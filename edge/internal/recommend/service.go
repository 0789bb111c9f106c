package recommend

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"storefront.internal/edge/internal/signalrules"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/breaker"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/telemetry"
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

// EngineRequest is the body that the engine gets.
type EngineRequest struct {
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

// Item is one recommended item.
type Item struct {
	ItemID    ident.ItemID
	VariantID ident.VariantID
}

// EngineResponse is the engine's answer: items, best first, and the engine's own ids, an object or nil.
type EngineResponse struct {
	Items     []Item
	EngineIDs json.RawMessage
}

// Engine recommends items. It returns at the context's deadline.
type Engine interface {
	Recommend(ctx context.Context, req *EngineRequest) (EngineResponse, error)
}

// Fallback recommends items without the engine.
type Fallback interface {
	Items(ctx context.Context, c ident.ConnectionID, limit int) ([]Item, error)
}

// Catalog reports for each item whether the connection has it. It reports false only when it is sure.
type Catalog interface {
	Owned(ctx context.Context, c ident.ConnectionID, items []ident.ItemID) []bool
}

// Minter makes Decision ids that carry a MAC.
type Minter interface {
	Mint(c ident.ConnectionID, now time.Time) ident.DecisionID
}

// Recorder records a Decision. It never blocks, and counts its failures itself.
type Recorder interface {
	Record(d *signal.Decision)
}

// Config is what a Service needs. A nil Engine means that none is configured, a nil Fallback that the list is
// empty without the engine, a nil Catalog that the engine's items are not checked, nil Documents that an
// answer has no cards.
type Config struct {
	Engine    Engine
	Fallback  Fallback
	Catalog   Catalog
	Documents Documents
	Minter    Minter
	Recorder  Recorder
	Metrics   *Metrics
	Logger    *slog.Logger
	Now       func() time.Time
	Deadline  time.Duration // of the engine; default 150 ms
}

// Service answers requests for recommendations. It is safe for concurrent use.
type Service struct {
	cfg      Config
	breaker  *breaker.Breaker // of the engine
	shoppers *signalrules.ShopperValidator
	logs     *telemetry.Throttle[string]
}

// engineFailures in a row open the breaker.
const engineFailures = 5

// openTime is how long the breaker stays open after the first failed probe, the second, and so on. It stays
// short: a probe costs one shopper the deadline, and until it succeeds all get the fallback.
func openTime() backoff.Policy { return backoff.Policy{Min: time.Second, Max: 4 * time.Second} }

// New returns a service.
func New(c Config) *Service {
	if c.Deadline <= 0 {
		c.Deadline = 150 * time.Millisecond
	}
	return &Service{cfg: c, shoppers: signalrules.NewShopperValidator(),
		logs:    telemetry.NewThrottle[string](time.Second, 1),
		breaker: breaker.New(breaker.Config{Failures: engineFailures, Open: openTime(), Now: c.Now})}
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
	now := s.cfg.Now().UTC().Truncate(time.Microsecond)
	question := &EngineRequest{ConnectionID: req.ConnectionID, StoreID: req.StoreID,
		DecisionID: s.cfg.Minter.Mint(req.ConnectionID, now), Placement: in.placement, ItemID: in.itemID,
		Visitor: in.shopper.Visitor, Client: in.shopper.Client, Cart: in.cart, Limit: in.limit,
		Traceparent: req.Traceparent}
	d := &signal.Decision{DecisionID: question.DecisionID, ConnectionID: req.ConnectionID,
		StoreID:   req.StoreID,
		Placement: in.placement, Source: fromEngine, ServedAt: now, Visitor: in.shopper.Visitor}
	response, ok := s.askEngine(ctx, question)
	if ok {
		proposed := len(response.Items)
		response.Items = s.ownedItems(ctx, req.ConnectionID, response.Items)
		// none of the connection's is a failure, an empty answer is not
		ok = len(response.Items) > 0 || proposed == 0
	}
	if !ok {
		d.Source = fromFallback
		response = EngineResponse{Items: s.fallbackItems(ctx, req.ConnectionID, in.limit)}
	}
	d.Items, d.EngineIDs = positions(response.Items, in.limit), response.EngineIDs
	s.cfg.Metrics.served.WithLabelValues(d.Source).Inc()
	s.cfg.Recorder.Record(d)
	answer := &Answer{DecisionID: d.DecisionID, Placement: d.Placement, ServedAt: d.ServedAt,
		Source: d.Source, Items: d.Items}
	if in.expand {
		answer.Cards = s.cards(ctx, req.ConnectionID, d.Items)
	}
	return answer, nil
}

// askEngine asks the engine within the deadline, unless the breaker is open.
func (s *Service) askEngine(ctx context.Context, req *EngineRequest) (EngineResponse, bool) {
	count := func(outcome string) { s.cfg.Metrics.engineRequests.WithLabelValues(outcome).Inc() }
	if s.cfg.Engine == nil {
		count("off")
		return EngineResponse{}, false
	}
	if _, ok := s.breaker.Acquire(); !ok {
		count("open")
		return EngineResponse{}, false
	}
	answered := false
	defer func() { // of a panic too
		if answered {
			s.breaker.Success()
		} else {
			s.breaker.Failure(0)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Deadline)
	defer cancel()
	began := s.cfg.Now()
	response, err := s.cfg.Engine.Recommend(ctx, req)
	s.cfg.Metrics.duration.Observe(s.cfg.Now().Sub(began).Seconds())
	switch {
	case err == nil:
		answered = true
		count("answered")
		return response, true
	case errors.Is(err, context.DeadlineExceeded):
		count("late")
	default:
		count("failed")
	}
	s.cfg.Logger.Debug("engine did not recommend", slog.Any("error", err))
	return EngineResponse{}, false
}

// ownedItems leaves out the items that the connection does not have.
func (s *Service) ownedItems(ctx context.Context, c ident.ConnectionID, items []Item) []Item {
	if s.cfg.Catalog == nil || len(items) == 0 {
		return items
	}
	ids := make([]ident.ItemID, len(items))
	for i, item := range items {
		ids[i] = item.ItemID
	}
	owned := make([]Item, 0, len(items))
	for i, ok := range s.cfg.Catalog.Owned(ctx, c, ids) {
		if ok {
			owned = append(owned, items[i])
		}
	}
	s.cfg.Metrics.unownedItems.Add(float64(len(items) - len(owned)))
	return owned
}

func (s *Service) fallbackItems(ctx context.Context, c ident.ConnectionID, limit int) []Item {
	if s.cfg.Fallback == nil {
		return nil
	}
	items, err := s.cfg.Fallback.Items(ctx, c, limit)
	if err != nil {
		s.cfg.Metrics.fallbackFailures.Inc()
		s.logs.Log(s.cfg.Logger, slog.LevelWarn, "fallback", "fallback failed", slog.Any("error", err))
		return nil
	}
	return items
}

// noteDiscards counts and logs the names of discarded fields, never their values.
func (s *Service) noteDiscards(req *Request, shopper signalrules.Shopper) {
	for field, discarded := range map[string]bool{"visitor": shopper.DiscardedVisitor,
		"client": shopper.DiscardedClient} {
		if discarded {
			s.cfg.Metrics.discarded.WithLabelValues(field).Inc()
			s.logs.Log(s.cfg.Logger, slog.LevelWarn, field,
				"malformed field discarded from a recommendation request", slog.String("field", field),
				slog.String("connection_id", string(req.ConnectionID)))
		}
	}
}

// positions numbers at most limit items for the Decision.
func positions(items []Item, limit int) []signal.DecisionItem {
	items = items[:min(len(items), limit)]
	numbered := make([]signal.DecisionItem, len(items))
	for i, item := range items {
		numbered[i] = signal.DecisionItem{Position: i, ItemID: item.ItemID, VariantID: item.VariantID}
	}
	return numbered
}
