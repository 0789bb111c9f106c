package kafka

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/stream"
	"storefront.internal/shared/testkit"
)

// Without keys the records of a connection are in all partitions; with keys they are in one, and the
// connections are spread over all of them.
func TestSignalsOfAConnectionStayTogether(t *testing.T) {
	t.Parallel()
	const partitions, connections = 4, 21 // not a multiple of the partitions
	for groups, together := range map[int]bool{1: false, partitions: true} {
		topic := testkit.Topic(t, partitions)
		s := NewSignals(stream.ProducerConfig{Brokers: testkit.Kafka(t), Topic: topic}, groups)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		for i := range 5 * connections {
			c := fmt.Sprintf("con_%02d", i%connections)
			outcome, err := s.Produce(ctx, ident.ConnectionID(c), []byte(c))
			if outcome != stream.Acknowledged {
				t.Fatal(outcome, err)
			}
		}
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
		found := map[string][]int{} // partitions by connection
		var used []int
		for p := range partitions {
			for _, value := range valuesOf(ctx, t, topic, p) {
				found[value] = append(found[value], p)
				used = append(used, p)
			}
		}
		slices.Sort(used)
		used = slices.Compact(used)
		if len(used) != partitions || len(found) != connections {
			t.Errorf("%d groups: %d connections in the partitions %v", groups, len(found), used)
		}
		for c, in := range found {
			if one := len(slices.Compact(in)) == 1; one != together || len(in) != 5 {
				t.Errorf("%d groups: %s is in %v", groups, c, in)
			}
		}
	}
}

func valuesOf(ctx context.Context, t *testing.T, topic string, partition int) (values []string) {
	t.Helper()
	conn, err := kafkago.DialLeader(ctx, "tcp", testkit.Kafka(t)[0], topic, partition)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	end, err := conn.ReadLastOffset()
	if err != nil {
		t.Fatal(err)
	}
	for range end {
		m, err := conn.ReadMessage(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, string(m.Value))
	}
	return values
}
