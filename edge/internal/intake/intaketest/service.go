package intaketest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/edge/internal/claims"
	"storefront.internal/edge/internal/intake"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// AnyDecision verifies every Decision id.
type AnyDecision struct{}

// Verify implements signalrules.DecisionVerifier.
func (AnyDecision) Verify(ident.ConnectionID, string) bool { return true }

// Ledger is a ledger that knows the signals of a Log. Err makes it fail.
type Ledger struct {
	Log    *Log
	Recent bool
	Err    error
	Asked  int
}

// Known implements intake.Ledger.
func (l *Ledger) Known(_ context.Context, _ ident.ConnectionID, ids []ident.SignalID) ([]bool, error) {
	l.Asked++
	known := make([]bool, len(ids))
	for i, id := range ids {
		known[i] = l.Log.Count(id) > 0
	}
	return known, l.Err
}

// RecentlyStored implements intake.Ledger.
func (l *Ledger) RecentlyStored(context.Context, time.Duration) (bool, error) { return l.Recent, l.Err }

// Service returns the Service of one process on these parts; random may be nil.
func Service(store claims.Store, producer intake.Producer, ledger intake.Ledger,
	random func() uint64) *intake.Service {
	return intake.New(intake.Config{Claims: store, Producer: producer, Ledger: ledger,
		Decisions: AnyDecision{},
		Metrics:   intake.NewMetrics(prometheus.NewRegistry()), Logger: slog.New(slog.DiscardHandler),
		Random: random})
}

// Request returns a call with a valid signal for each id, all of which occurred at that time.
func Request(at time.Time, ids ...string) intake.Request {
	var elements []string
	for _, id := range ids {
		elements = append(elements, fmt.Sprintf(`{"signal_id":%q,"type":"click","occurred_at":%q,`+
			`"decision_id":"dec_1","item_id":"itm_1"}`, id, at.UTC().Format(time.RFC3339Nano)))
	}
	return intake.Request{ConnectionID: "con_1", StoreID: "str_1",
		Body: []byte(`{"signals":[` + strings.Join(elements, ",") + `]}`)}
}

// KeyOf returns the key of a signal's claim.
func KeyOf(c ident.ConnectionID, id ident.SignalID) claims.Key {
	return claims.Key(signal.LedgerDigest(c, id))
}
