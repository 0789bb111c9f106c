package postgres

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// hanging is a PostgreSQL that may hang or refuse.
type hanging struct {
	hangs   atomic.Bool
	refuses atomic.Bool
}

func (h *hanging) Ping(ctx context.Context) error {
	if h.refuses.Load() {
		return errors.New("refused")
	}
	if h.hangs.Load() {
		<-ctx.Done()
	}
	return ctx.Err()
}

// Work under way ends within six seconds of a hang, later work at once, and work goes on a second after the
// hang.
func TestMonitorEndsWorkWhilePostgresHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		server := &hanging{}
		m := NewMonitor(server, &Answers{}, slog.New(slog.DiscardHandler))
		go func() { _ = m.Run(ctx) }()
		time.Sleep(10 * time.Second)
		running, done := m.WhileUp(ctx)
		defer done()
		began := time.Now()
		server.hangs.Store(true)
		time.Sleep(2 * time.Second)
		if running.Err() != nil {
			t.Error("one ping without an answer ends work")
		}
		<-running.Done()
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("work ends after %s", took)
		}
		if later, done := m.WhileUp(ctx); later.Err() == nil {
			t.Error("work begins while PostgreSQL hangs")
		} else {
			done()
		}
		server.hangs.Store(false)
		server.refuses.Store(true)
		time.Sleep(10 * time.Second)
		server.refuses.Store(false)
		time.Sleep(pingEvery)
		synctest.Wait()
		if again, done := m.WhileUp(ctx); again.Err() != nil {
			t.Error("work does not begin again")
		} else {
			done()
		}
		stop()
	})
}

// TestMonitorBelievesAnswers lets no ping be answered, as on a machine that starves, while statements of the
// pool still are.
func TestMonitorBelievesAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		server, answers := &hanging{}, &Answers{}
		m := NewMonitor(server, answers, slog.New(slog.DiscardHandler))
		go func() { _ = m.Run(ctx) }()
		running, done := m.WhileUp(ctx)
		defer done()
		server.hangs.Store(true)
		for _, err := range []error{nil, &pgconn.PgError{Code: "23505"}} {
			for range 20 {
				time.Sleep(time.Second)
				answers.TraceQueryEnd(ctx, nil, pgx.TraceQueryEndData{Err: err})
			}
		}
		if running.Err() != nil {
			t.Error("work ends although PostgreSQL answers statements")
		}
		for range 7 { // these are no answers
			time.Sleep(time.Second)
			answers.TraceQueryEnd(ctx, nil, pgx.TraceQueryEndData{Err: context.DeadlineExceeded})
		}
		if running.Err() == nil {
			t.Error("work goes on although PostgreSQL answers nothing")
		}
	})
}
