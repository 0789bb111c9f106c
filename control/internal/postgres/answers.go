package postgres

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Answers notes when PostgreSQL answered the last statement of a pool. It is a tracer of pgx, and safe for
// concurrent use.
type Answers struct{ last atomic.Int64 }

// TraceQueryStart implements pgx.QueryTracer.
func (*Answers) TraceQueryStart(ctx context.Context, _ *pgx.Conn,
	_ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer. An error of the server is an answer, too.
func (a *Answers) TraceQueryEnd(_ context.Context, _ *pgx.Conn, end pgx.TraceQueryEndData) {
	if end.Err == nil || errors.As(end.Err, new(*pgconn.PgError)) {
		a.last.Store(time.Now().UnixNano())
	}
}

// after reports whether a statement was answered after a time.
func (a *Answers) after(t time.Time) bool { return a.last.Load() > t.UnixNano() }
