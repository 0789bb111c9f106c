package intake

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"storefront.internal/edge/internal/claims"
	"storefront.internal/edge/internal/deadline"
	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/edge/internal/signaljson"
	"storefront.internal/edge/internal/signalrules"
	"storefront.internal/shared/breaker"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/stream"
	"storefront.internal/shared/telemetry"
)

// Request is one authorized call.
type Request struct {
	ConnectionID ident.ConnectionID
	StoreID      ident.StoreID
	Body         []byte    // read during the call only; the results point into it
	ReceivedAt   time.Time // zero: now
	Audit        signal.Audit
	Results      []signal.Result // memory for the results; may be nil
}

// Producer hands a record of a connection to Kafka and waits, at most until ctx's deadline, until all in-sync
// replicas have it. A value that was not acknowledged may still be read by the transport, so it is never used
// again.
type Producer interface {
	Produce(ctx context.Context, c ident.ConnectionID, value []byte) (stream.Outcome, error)
}

// Ledger asks PostgreSQL which signals are stored. Unlike a claim, what it knows does not expire. Its methods
// may block until the context ends.
type Ledger interface {
	// Known says of each id whether the ledger holds it.
	Known(ctx context.Context, c ident.ConnectionID, ids []ident.SignalID) ([]bool, error)
	// RecentlyStored reports whether a signal was stored within that time.
	RecentlyStored(ctx context.Context, within time.Duration) (bool, error)
}

// Config is what a Service needs.
type Config struct {
	Claims    claims.Store
	Producer  Producer
	Ledger    Ledger
	Decisions signalrules.DecisionVerifier
	Compact   bool // records are written in version 2
	// Quota bounds the claims of a connection, which is the key of its subjects, since a claim takes memory
	// of Redis for claims.ClaimTTL; nil: no bound.
	Quota    *ratelimit.Limiter
	Metrics  *Metrics
	Logger   *slog.Logger
	Now      func() time.Time // nil: time.Now
	Random   func() uint64    // for claims; nil: rand.Uint64
	Deadline time.Duration    // of a request, from its start; 0: 4 s
}

// defaultDeadline is far below claims.TakeoverAfter, so that an attempt ends before another one may take
// over.
const defaultDeadline = 4 * time.Second

// Service records batches of signals. It is safe for concurrent use.
type Service struct {
	cfg     Config
	rules   *signalrules.Rules
	claimer *claims.Claimer
	ledger  *breaker.Breaker // of the look-ups in the ledger
	logs    *telemetry.Throttle[string]
	scratch sync.Pool // of *scratch
	values  sync.Pool // of *[]byte: acknowledged record values
}

// New returns a Service. Close it after the last Record.
func New(cfg Config) *Service {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Deadline <= 0 || cfg.Deadline > claims.TakeoverAfter/2 {
		cfg.Deadline = defaultDeadline
	}
	s := &Service{cfg: cfg, rules: signalrules.New(cfg.Decisions), ledger: newLedgerBreaker(),
		logs: telemetry.NewThrottle[string](time.Second, 1)}
	s.claimer = claims.New(claims.Config{
		Store: cfg.Claims, Deadline: cfg.Deadline, Random: cfg.Random, Logger: cfg.Logger,
		ObserveWait:  func(d time.Duration) { cfg.Metrics.wait.Observe(d.Seconds()) },
		CountDropped: cfg.Metrics.dropped.Inc,
	})
	s.scratch.New = func() any { return new(scratch) }
	s.values.New = func() any { return new([]byte) }
	return s
}

// Close writes, until ctx ends, the statuses of attempts that wait for Redis.
func (s *Service) Close(ctx context.Context) { s.claimer.Close(ctx) }

// Record records a batch: it decodes it, validates each element, claims the valid signals, hands the new ones
// to Kafka and confirms. charge, when there is one, is called once with the number of signals, before they
// are validated.
//
// There is one result per position. The error is a *fault.Error: invalid_request,
// signal_batch_limit_exceeded, or signals_unavailable.
func (s *Service) Record(ctx context.Context, req Request, charge func(n int)) ([]signal.Result, error) {
	own := deadline.New(ctx, time.Now().Add(s.cfg.Deadline))
	defer own.End()
	sc := s.scratch.Get().(*scratch)
	defer func() {
		sc.reset()
		s.scratch.Put(sc)
	}()
	if bad := sc.decoder.Decode(req.Body); bad != nil {
		s.cfg.Metrics.refused.WithLabelValues(string(bad.Code)).Inc()
		return nil, bad
	}
	if charge != nil {
		charge(sc.decoder.Count())
	}
	sc.start(&req, s.cfg.Now())
	s.validate(sc)
	if len(sc.valid) > 0 {
		if bad := s.recordValid(own, sc); bad != nil {
			return nil, bad
		}
	}
	s.cfg.Metrics.countAnswered(sc.results)
	return sc.results, nil
}

// unavailable counts the cause and returns the 503. Its hint for Retry-After is chosen at random, so that
// clients do not return at the same time: with what the response adds, the header says 1 to 7 s.
func (s *Service) unavailable(cause string, err error) *fault.Error {
	s.cfg.Metrics.unrecorded.WithLabelValues(cause).Inc()
	f := fault.Wrap(fault.SignalsUnavailable,
		"Signals cannot be recorded right now. Keep the batch and send it again.", err)
	f.RetryAfter = time.Second + rand.N(4*time.Second)
	return f
}

// scratch is the memory of one request, from a pool. The results leave it; everything else is valid until
// reset.
type scratch struct {
	decoder signaljson.Decoder
	req     Request
	now     time.Time // by the service's clock
	rules   signalrules.Validator
	checked [signaljson.MaxSignals]signalrules.Result
	results []signal.Result // the caller's

	valid   []int        // positions of the elements that are the first valid one with their id
	keys    []claims.Key // of them, in the same order
	attempt claims.Attempt
	record  signal.Record
}

// start prepares the results, one per position.
func (sc *scratch) start(req *Request, now time.Time) {
	sc.req, sc.now = *req, now
	if req.ReceivedAt.IsZero() {
		sc.req.ReceivedAt = now
	}
	if n := sc.decoder.Count(); n <= cap(req.Results) {
		sc.results = req.Results[:n]
		clear(sc.results)
	} else {
		sc.results = make([]signal.Result, n)
	}
}

func (sc *scratch) reset() {
	clear(sc.checked[:min(sc.decoder.Count(), signaljson.MaxSignals)])
	sc.decoder.Reset()
	sc.req, sc.results = Request{}, nil
	sc.rules = signalrules.Validator{}
	sc.valid, sc.keys = sc.valid[:0], sc.keys[:0]
	sc.attempt.Reset()
	signals := sc.record.Signals
	clear(signals)
	sc.record = signal.Record{Signals: signals[:0]}
}
