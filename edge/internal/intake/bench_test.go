package intake

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/edge/internal/claims"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/stream"
)

// anyDecision verifies every Decision id.
type anyDecision struct{}

func (anyDecision) Verify(ident.ConnectionID, string) bool { return true }

// BenchmarkDecode10 decodes and validates a batch of ten, as storefronts send it, and writes its answer.
func BenchmarkDecode10(b *testing.B) {
	body, err := os.ReadFile("../signaljson/testdata/ten_signals.json")
	if err != nil {
		b.Fatal(err)
	}
	s := New(Config{Decisions: anyDecision{}, Metrics: NewMetrics(prometheus.NewRegistry()),
		Logger: slog.New(slog.DiscardHandler)})
	req := Request{ConnectionID: "con_1", StoreID: "str_1", Body: body}
	sc := new(scratch)
	var answer []byte
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := sc.decoder.Decode(body); err != nil {
			b.Fatal(err)
		}
		sc.start(&req, time.Time{})
		s.validate(sc)
		if len(sc.valid) != 10 {
			b.Fatalf("%+v", sc.results)
		}
		answer = signal.AppendResults(answer[:0], sc.results)
		sc.reset()
	}
}

// freeStore is a Redis without claims, and a Kafka that acknowledges.
type freeStore struct{ claims.Store }

func (freeStore) Claim(context.Context, []claims.Key, string, []string) (claims.Memory, error) {
	return claims.Known, nil
}

func (freeStore) Resolve(context.Context, []string, claims.Status, []claims.Status) error { return nil }

func (freeStore) Produce(context.Context, ident.ConnectionID, []byte) (stream.Outcome, error) {
	return stream.Acknowledged, nil
}

// BenchmarkRecord10 is the use case with stores that cost nothing.
func BenchmarkRecord10(b *testing.B) {
	body, err := os.ReadFile("../signaljson/testdata/ten_signals.json")
	if err != nil {
		b.Fatal(err)
	}
	now := time.Date(2026, 11, 21, 10, 1, 0, 0, time.UTC)
	s := New(Config{Claims: freeStore{}, Producer: freeStore{}, Decisions: anyDecision{},
		Ledger:  noLedger{},
		Metrics: NewMetrics(prometheus.NewRegistry()), Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return now }})
	results := make([]signal.Result, 0, 10)
	b.ReportAllocs()
	for b.Loop() {
		got, err := s.Record(context.Background(), Request{ConnectionID: "con_1", StoreID: "str_1",
			Body: body, Results: results}, nil)
		if err != nil || got[9].Status != signal.Accepted {
			b.Fatalf("%+v, %v", got, err)
		}
	}
}

type noLedger struct{}

func (noLedger) Known(_ context.Context, _ ident.ConnectionID, ids []ident.SignalID) ([]bool, error) {
	return make([]bool, len(ids)), nil
}

func (noLedger) RecentlyStored(context.Context, time.Duration) (bool, error) { return false, nil }
