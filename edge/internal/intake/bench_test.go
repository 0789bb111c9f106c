package intake

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/signal"
)

// tenSignals is a body of about 4.8 KB, as storefronts send them.
func tenSignals() []byte {
	var elements []string
	for i := range 10 {
		elements = append(elements, fmt.Sprintf(`{"signal_id":"sig_0192f3a4b5c6d7e8f9a0b1c2d3e%04d","type":"add_to_cart","occurred_at":"2026-11-21T10:00:%02d.123Z",`+
			`"decision_id":"dec_own8d1YWE5NzQ4ZTQtN2YzYS00ZGJkLTg5","item_id":"itm_5f1c9a7b3d2e4f60%04d","variant_id":"var_77aa12bc90de4f60%04d","position":%d,"quantity":2,`+
			`"visitor":{"visitor_id":"vis_4c8f2a9e1b7d","session_id":"ses_90be11d2c3a4"},`+
			`"client":{"page_url":"https://shop.example/products/remera-%d?utm_source=mail","languages":["es-AR","es","en"],"timezone":"America/Argentina/Buenos_Aires","viewport":{"width":390,"height":844,"pixel_ratio":3}}}`,
			i, i, i, i, i, i))
	}
	return []byte(`{"signals":[` + strings.Join(elements, ",") + `]}`)
}

// BenchmarkDecode10 decodes, judges and answers a batch of ten.
func BenchmarkDecode10(b *testing.B) {
	body := tenSignals()
	s := New(Config{Decisions: ownDecisions{}, Metrics: NewMetrics(prometheus.NewRegistry()), Logger: slog.New(slog.DiscardHandler)})
	req := Request{ConnectionID: "con_1", StoreID: "str_1", Body: body}
	w := new(work)
	var answer []byte
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := w.scan.decode(body); err != nil {
			b.Fatal(err)
		}
		w.begin(&req, time.Time{})
		s.judge(w)
		if len(w.first) != 10 {
			b.Fatalf("%+v", w.results)
		}
		answer = signal.AppendResults(answer[:0], w.results)
		w.reset()
	}
}
