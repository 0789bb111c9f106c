package stream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/protocol"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// BenchmarkCodec encodes flushes of twenty records of ten signals.
func BenchmarkCodec(b *testing.B) {
	var records []*queuedRecord
	for i := range 20 {
		records = append(records, &queuedRecord{value: recordOfTen(byte(i))})
	}
	for _, codec := range []Codec{NoCompression, Snappy, LZ4, Zstd} {
		b.Run(string(codec), func(b *testing.B) {
			var size counter
			began := processorTime(b)
			n := 0
			for b.Loop() {
				size = 0
				set := protocol.RecordSet{Version: 2, Attributes: protocol.Attributes(codec.compression()),
					Records: &flushReader{records: records, now: time.Now}}
				if _, err := set.WriteTo(&size); err != nil {
					b.Fatal(err)
				}
				n += len(records)
			}
			b.ReportMetric(float64((processorTime(b)-began).Nanoseconds())/float64(n), "cpu-ns/record")
			b.ReportMetric(float64(size)/20, "bytes/record")
		})
	}
}

// counter counts what is written to it.
type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// recordOfTen is a record as an edge writes it for a page of a shop; the seed chooses its ids.
func recordOfTen(seed byte) []byte {
	number := func(n int32) *int32 { return &n }
	received := time.Date(2026, 11, 21, 10, 0, 0, 123456000, time.UTC)
	r := signal.Record{RecordID: fmt.Sprintf("018f8b0e-%04d-7000-8000-%012d", seed, int(seed)*7919),
		ConnectionID: "con_06h0bb9jstpqddrf3i1p46d77k", StoreID: "str_06h0bb9jqlt0b3g5tct9lutpu0",
		ReceivedAt: received, Audit: signal.Audit{IP: "203.0.113.9", AcceptLanguage: "es-AR,es;q=0.9",
			UserAgent: "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 " +
				"(KHTML, like Gecko) Version/17.0 Mobile/15E148 Safari/604.1",
			Origin: "https://shop.example", Referer: "https://shop.example/products/remera-0"}}
	for i := range 10 {
		digest := sha256.Sum256([]byte{seed, byte(i)})
		id := hex.EncodeToString(digest[:])
		r.Signals = append(r.Signals, signal.Recorded{Index: i, Signal: signal.Signal{
			ID: ident.SignalID("sig_" + id[:31]), Type: signal.AddToCart,
			OccurredAt: received.Add(time.Duration(i) * time.Second),
			DecisionID: "dec_own8d1YWE5NzQ4ZTQtN2YzYS00ZGJkLTg5", ItemID: ident.ItemID("itm_" + id[:20]),
			VariantID: ident.VariantID("var_" + id[20:40]), Position: number(int32(i)), Quantity: number(2),
			Visitor: &signal.Visitor{
				VisitorID: ident.VisitorID(fmt.Sprintf("vis_%012d", int(seed)*104729)),
				SessionID: ident.SessionID(fmt.Sprintf("ses_%012d", int(seed)*15485863)),
			},
			Client: json.RawMessage(`{"page_url":"https://shop.example/products/remera-0?utm_source=mail",` +
				`"languages":["es-AR","es","en"],"timezone":"America/Argentina/Buenos_Aires",` +
				`"viewport":{"width":390,"height":844,"pixel_ratio":3}}`),
		}})
	}
	return signal.AppendRecord(nil, &r)
}
