package intake

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"log/slog"
	mathrand "math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"storefront.internal/edge/internal/deadline"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/stream"
)

// Request is one call of operation 1 that was let in.
type Request struct {
	ConnectionID ident.ConnectionID
	StoreID      ident.StoreID
	Body         []byte    // read during the call only; the results point into it
	ReceivedAt   time.Time // zero: now
	Audit        signal.Audit
	Results      []signal.Result // room for the results; nil: they get their own
}

// Producer hands a record to Kafka and waits for the answer of all replicas, at most until ctx's deadline. A value
// that was not acknowledged may still be read by the transport, so it is never used again.
type Producer interface {
	Produce(ctx context.Context, value []byte) (stream.Outcome, error)
}

// Ledger asks PostgreSQL which signals are stored. "duplicate" has no time limit, and claims have.
type Ledger interface {
	// Known says of each id whether the ledger holds it.
	Known(ctx context.Context, c ident.ConnectionID, ids []ident.SignalID) ([]bool, error)
	// RecentlyStored says whether the store holds a signal younger than within.
	RecentlyStored(ctx context.Context, within time.Duration) (bool, error)
}

// Config is what a Service stands on.
type Config struct {
	Claims    Claims
	Producer  Producer
	Ledger    Ledger
	Decisions DecisionVerifier
	Metrics   *Metrics
	Logger    *slog.Logger
	Now       func() time.Time // nil: time.Now
	Deadline  time.Duration    // of a request, from its start; 0: 4 s
}

// defaultDeadline is far below the lease, so that an attempt is over before anybody may take over from it.
const defaultDeadline = 4 * time.Second

// Service is the use case of operation 1. Its methods may be called at the same time.
type Service struct {
	cfg      Config
	rules    rules
	acquirer acquirer
	marker   *marker
	prefix   string
	counter  atomic.Uint64
	works    sync.Pool
	values   sync.Pool
}

// New returns a Service. Close it after the last Record.
func New(cfg Config) *Service {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Deadline <= 0 || cfg.Deadline > lease/2 {
		cfg.Deadline = defaultDeadline
	}
	var random [12]byte
	_, _ = rand.Read(random[:]) // never fails: the runtime ends the process instead
	s := &Service{cfg: cfg, prefix: base64.RawURLEncoding.EncodeToString(random[:]) + "-"}
	s.rules = rules{reasons: newRuleReasons(), zones: newZones(), decisions: cfg.Decisions}
	s.marker = newMarker(cfg.Claims, cfg.Metrics.dropped.Inc)
	s.acquirer = acquirer{claims: cfg.Claims, nextID: s.nextAttempt, marker: s.marker, waited: cfg.Metrics.waited}
	s.works.New = func() any { return new(work) }
	s.values.New = func() any { return new([]byte) }
	return s
}

// Close writes, until ctx ends, the registers that wait for Redis.
func (s *Service) Close(ctx context.Context) { s.marker.close(ctx) }

// nextAttempt returns an attempt id that no other process and no other attempt has: a prefix drawn at the start of
// the process, and a counter.
func (s *Service) nextAttempt() string { return s.prefix + strconv.FormatUint(s.counter.Add(1), 36) }

// Record records a batch: decode, judge each element, claim what is sound, hand off what is new, confirm. charge, when
// there is one, is called once with the number of signals before any of them is looked at.
//
// The results are one per position. The error is a *fault.Error: invalid_request, signal_batch_limit_exceeded, or
// signals_unavailable, after which a resend of the same batch is right.
func (s *Service) Record(ctx context.Context, req Request, charge func(n int)) ([]signal.Result, error) {
	patience := deadline.New(ctx, time.Now().Add(s.cfg.Deadline))
	defer patience.End()
	ctx = patience
	w := s.works.Get().(*work)
	defer func() {
		w.reset()
		s.works.Put(w)
	}()
	if bad := w.scan.decode(req.Body); bad != nil {
		s.cfg.Metrics.refuse(bad.Code)
		return nil, bad
	}
	if charge != nil {
		charge(w.scan.batch.count)
	}
	w.begin(&req, s.cfg.Now())
	s.judge(w)
	if len(w.first) > 0 {
		if bad := s.settle(ctx, w); bad != nil {
			return nil, bad
		}
	}
	s.cfg.Metrics.answered(w.results)
	return w.results, nil
}

// retryAfter is how long a client should wait after a 503: 1 to 5 s, drawn, so that clients do not come back at once.
func retryAfter() time.Duration { return time.Second + mathrand.N(4*time.Second) }

func (s *Service) unavailable(cause string, err error) *fault.Error {
	s.cfg.Metrics.unrecorded.WithLabelValues(cause).Inc()
	f := fault.Wrap(fault.SignalsUnavailable, "Signals cannot be recorded right now. Keep the batch and send it again.", err)
	f.RetryAfter = retryAfter()
	return f
}
