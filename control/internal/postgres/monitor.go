package postgres

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"storefront.internal/shared/service"
)

// PostgreSQL counts as down after pingFailures pings in a row without an answer, so within six seconds. One
// that answers each statement after a second counts as up: its operations take long, and succeed. One that
// answered a statement of the pool while a ping had been waiting for a second counts as up too: on a machine
// without processor time to spare, single answers are late.
const (
	pingEvery    = time.Second
	pingTimeout  = 2500 * time.Millisecond
	pingFailures = 2
)

// Pinger asks PostgreSQL for a sign of life. It has a connection of its own: that all others are busy does
// not mean that PostgreSQL hangs.
type Pinger interface {
	Ping(ctx context.Context) error
}

// Monitor ends the work that needs PostgreSQL while PostgreSQL does not answer. Otherwise each request would
// wait for its own deadline, and would keep a connection of the pool until then. It is safe for concurrent
// use.
type Monitor struct {
	pinger  Pinger
	answers *Answers
	logger  *slog.Logger

	failures int // pings in a row; used by Run alone

	mu   sync.Mutex
	up   context.Context // it ends when PostgreSQL goes down
	down context.CancelFunc
}

// NewMonitor returns a Monitor of the PostgreSQL whose answers are noted. It takes it for up until Run has
// seen otherwise.
func NewMonitor(pinger Pinger, answers *Answers, logger *slog.Logger) *Monitor {
	m := &Monitor{pinger: pinger, answers: answers, logger: logger}
	m.up, m.down = context.WithCancel(context.Background())
	return m
}

// WhileUp returns a context that also ends when PostgreSQL goes down. While it is down, the context has ended
// already.
func (m *Monitor) WhileUp(ctx context.Context) (context.Context, context.CancelFunc) {
	m.mu.Lock()
	up := m.up
	m.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	if up.Err() != nil { // at once, not in AfterFunc's goroutine
		cancel()
		return ctx, cancel
	}
	unwatch := context.AfterFunc(up, cancel)
	return ctx, func() {
		unwatch()
		cancel()
	}
}

// Run watches PostgreSQL until ctx ends.
func (m *Monitor) Run(ctx context.Context) error {
	service.Every(ctx, pingEvery, m.ping)
	return nil
}

func (m *Monitor) ping(ctx context.Context) {
	pingCtx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	began := time.Now()
	err := m.pinger.Ping(pingCtx)
	if ctx.Err() != nil {
		return
	}
	if m.answers.after(began.Add(pingEvery)) {
		err = nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.failures = 0
		if m.up.Err() != nil {
			m.up, m.down = context.WithCancel(context.Background())
			m.logger.Info("PostgreSQL answers again")
		}
		return
	}
	m.failures++
	if m.failures == pingFailures {
		m.down()
		m.logger.Warn("PostgreSQL does not answer: requests that need it are answered 503 at once",
			slog.Any("error", withoutValues("ping", err)))
	}
}
