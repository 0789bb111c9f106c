package systemtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"storefront.internal/shared/testkit"
)

// A shopper's trace goes through the edge, the record in Kafka, the relay and its request to the engine: one
// trace id, and a span of each service in the collector.
func TestTraceFromTheBrowserToTheEngine(t *testing.T) {
	t.Parallel()
	x, collector := newDeployment(t), testkit.NewCollector(t)
	edge := x.edge("EDGE_TRACE_ENDPOINT="+collector.URL, "EDGE_TRACE_RATIO=1")
	x.relay("RELAY_TRACE_ENDPOINT="+collector.URL, "RELAY_TRACE_RATIO=0")
	s := x.newStorefront()
	d := s.recommend(edge)

	trace, browser := randomHex(16), randomHex(8)
	traceparent := "00-" + trace + "-" + browser + "-01"
	s.Header = http.Header{"Traceparent": {traceparent}}
	ends := offsets(t, x.Settings.KafkaBrokers, kafkago.LastOffsetOf)
	batch := cartBatch(d, 1)
	s.must(edge, batch)
	x.awaitDelivered(t, s, idsOf(batch), time.Minute)

	inKafka := traceparents(t, x.Settings.KafkaBrokers, ends, batch[0].ID)
	if len(inKafka) == 0 {
		t.Fatal("no record of the signal is in Kafka")
	}
	for _, text := range inKafka {
		if len(text) != len(traceparent) || text[:36] != traceparent[:36] ||
			!strings.HasSuffix(text, "-01") || text == traceparent {
			t.Errorf("the record's header is %q", text)
		}
	}
	find := func(service, name string, parents ...string) (found testkit.SentSpan) {
		eventually(t, time.Minute, "the span "+name, func() error {
			all := collector.SpansNamed(name)
			i := slices.IndexFunc(all, func(one testkit.SentSpan) bool {
				return one.TraceID == trace && one.Service == service &&
					slices.Contains(parents, one.ParentSpanID)
			})
			if i < 0 {
				return fmt.Errorf("not among %+v", all)
			}
			found = all[i]
			return nil
		})
		return found
	}
	var spans []string // of the edge's requests; a client that was told 503 has sent the batch twice
	for _, text := range inKafka {
		spans = append(spans, text[36:52])
	}
	if request := find("storefront-edge", "recordStorefrontSignals", browser); !slices.Contains(spans,
		request.SpanID) && len(collector.SpansNamed("recordStorefrontSignals")) == 1 {
		t.Errorf("the record goes on from %v, the request was %s", spans, request.SpanID)
	}
	find("storefront-engine-relay", "store signals", spans...)
	call := find("storefront-engine-relay", "deliver interactions", spans...)
	if got, want := x.engine.traceparents(), "00-"+trace+"-"+call.SpanID+"-01"; !slices.Contains(got, want) {
		t.Errorf("the engine was told %v, want %s", got, want)
	}
}

// offsets are one offset of each partition of the signals' topic.
func offsets(t *testing.T, brokers string, of func(int) kafkago.OffsetRequest) map[int]int64 {
	t.Helper()
	all, err := partitions(brokers)
	check(t, err)
	var requests []kafkago.OffsetRequest
	for _, p := range all {
		requests = append(requests, of(p.ID))
	}
	client, closes := kafkaClient(brokers)
	defer closes()
	res, err := client.ListOffsets(t.Context(),
		&kafkago.ListOffsetsRequest{
			Topics: map[string][]kafkago.OffsetRequest{"storefront.signals.v1": requests},
		})
	check(t, err)
	found := map[int]int64{}
	for _, p := range res.Topics["storefront.signals.v1"] {
		check(t, p.Error)
		found[p.Partition] = p.LastOffset
	}
	return found
}

// traceparents are the headers of the records since these offsets whose value contains the text.
func traceparents(t *testing.T, brokers string, since map[int]int64, text string) (found []string) {
	t.Helper()
	client, closes := kafkaClient(brokers)
	defer closes()
	for partition, end := range offsets(t, brokers, kafkago.LastOffsetOf) {
		for next := since[partition]; next < end; {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			res, err := client.Fetch(ctx,
				&kafkago.FetchRequest{Topic: "storefront.signals.v1", Partition: partition, Offset: next,
					MinBytes: 1, MaxBytes: 4 << 20, MaxWait: time.Second})
			check(t, err)
			check(t, res.Error)
			for {
				r, err := res.Records.ReadRecord()
				if errors.Is(err, io.EOF) {
					break
				}
				check(t, err)
				next = max(next, r.Offset+1)
				value, err := kafkago.ReadAll(r.Value)
				check(t, err)
				if bytes.Contains(value, []byte(text)) {
					header := ""
					for _, h := range r.Headers {
						if h.Key == "traceparent" {
							header = string(h.Value)
						}
					}
					found = append(found, header)
				}
			}
			cancel()
		}
	}
	return found
}

func kafkaClient(brokers string) (*kafkago.Client, func()) {
	transport := &kafkago.Transport{DialTimeout: 10 * time.Second}
	return &kafkago.Client{Addr: kafkago.TCP(strings.Split(brokers, ",")...), Timeout: time.Minute,
		Transport: transport}, transport.CloseIdleConnections
}
