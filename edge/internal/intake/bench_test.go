package intake

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
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
