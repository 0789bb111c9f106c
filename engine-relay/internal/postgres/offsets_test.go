package postgres_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"storefront.internal/engine-relay/internal/sink"
)

func partition(id int) sink.Partition { return sink.Partition{Topic: signalsTopic, ID: id} }

// begin lets an assignment begin with partitions whose group's offset, committed by a relay, is the given.
func (b *bundle) begin(t testing.TB, assignment, cluster string, committed ...int64) []int64 {
	t.Helper()
	var all []sink.Resumption
	for id, offset := range committed {
		all = append(all,
			sink.Resumption{Partition: partition(id), Committed: offset, Marked: true, First: 3})
	}
	starts, err := b.store.Begin(t.Context(), assignment, cluster, all)
	if err != nil {
		t.Fatal(err)
	}
	return starts
}

// store1 stores one signal as the record of these offsets.
func (b *bundle) store1(t testing.TB, assignment string, id int, from, to int64, least int64) error {
	t.Helper()
	m := batchOf(click(fmt.Sprintf("%d_%d", id, from)))
	m.Partition, m.Offset, m.From, m.To = id, to-1, from, to
	batch := gather(t, m)
	batch.Claim(assignment, map[sink.Partition]int64{partition(id): least})
	return b.writer.Write(t.Context(), batch)
}

func TestStoredOffsets(t *testing.T) {
	t.Parallel()
	b := setup(t)
	held := func() string {
		t.Helper()
		return one[string](t, b, `SELECT string_agg(stored::text, ' ' ORDER BY topic_partition)
			FROM relay.stored_offsets`)
	}
	b.begin(t, "a/1", "kafka", 5, -1)
	expect(t, "a relay that PostgreSQL does not know begins at the first records", held(),
		"{[-1,3)} {[-1,3)}")
	for _, span := range [][2]int64{{3, 5}, {9, 12}} {
		if err := b.store1(t, "a/1", 0, span[0], span[1], 3); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, "with a transaction under way", held(), "{[-1,5),[9,12)} {[-1,3)}")
	positions, err := b.store.Positions(t.Context(), "a/1")
	if err != nil || len(positions) != 2 || positions[0].Next+positions[1].Next != 5+3 {
		t.Errorf("positions %v, %v", positions, err)
	}
	if err := b.store1(t, "a/1", 0, 5, 9, 5); err != nil {
		t.Fatal(err)
	}
	expect(t, "at its end", held(), "{[-1,12)} {[-1,3)}")

	expect(t, "another relay begins at", fmt.Sprint(b.begin(t, "b/2", "kafka", 12)), "[12]")
	if err := b.store1(t, "a/1", 0, 12, 13, 12); !errors.Is(err, sink.ErrBehind) {
		t.Errorf("an older generation stores: %v", err)
	}
	expect(t, "signals of the older generation", b.count(t, "relay.signals WHERE signal_id = 'sig_0_12'"), 0)
	expect(t, "after a restore a relay begins at", fmt.Sprint(b.begin(t, "b/3", "kafka", 40)), "[12]")
	expect(t, "with another Kafka it begins at", fmt.Sprint(b.begin(t, "b/4", "moved", 40)), "[3]")
	expect(t, "what was stored of the other Kafka", held(), "{[-1,3)} {[-1,3)}")
}

// TestARunningRelayFindsARestore: the rows go back to what they were while the relay holds the partition.
func TestARunningRelayFindsARestore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.begin(t, "a/1", "kafka", 5)
	b.exec(t, `CREATE TABLE backup AS SELECT * FROM relay.stored_offsets`)
	if err := b.store1(t, "a/1", 0, 3, 9, 3); err != nil {
		t.Fatal(err)
	}
	b.exec(t, `UPDATE relay.stored_offsets SET stored = backup.stored FROM backup`)
	if err := b.store1(t, "a/1", 0, 9, 10, 9); !errors.Is(err, sink.ErrBehind) {
		t.Errorf("after the restore: %v", err)
	}
	expect(t, "signals of that transaction", b.count(t, "relay.signals WHERE signal_id = 'sig_0_9'"), 0)
	expect(t, "it begins again at", fmt.Sprint(b.begin(t, "a/2", "kafka", 9)), "[3]")
	b.exec(t, `DELETE FROM relay.stored_offsets`)
	if err := b.store1(t, "a/2", 0, 3, 9, 3); !errors.Is(err, sink.ErrBehind) {
		t.Errorf("without the row: %v", err)
	}
}

// TestWorkersStoreOffsetsInAnyOrder: no transaction waits for one that waits for it.
func TestWorkersStoreOffsetsInAnyOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.begin(t, "a/1", "kafka", 3, 3, 3)
	const records = 60
	var work []int
	for i := range 3 * records {
		work = append(work, i)
	}
	rand.Shuffle(len(work), func(i, j int) { work[i], work[j] = work[j], work[i] })
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for n := w * records; n < (w+1)*records; n += 10 {
				batch := &sink.Batch{}
				for _, i := range work[n : n+10] {
					m := batchOf(click(fmt.Sprint(i)))
					m.Partition, m.Offset = i%3, int64(3+i/3)
					m.From, m.To = m.Offset, m.Offset+1
					if err := batch.AddSignals(m); err != nil {
						t.Error(err)
					}
				}
				batch.Claim("a/1", nil)
				if err := writerThat(b.store, func() { t.Error("a transaction failed") }).Write(t.Context(),
					batch); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	expect(t, "partitions that are stored to their end",
		b.count(t, "relay.stored_offsets WHERE stored = int8multirange(int8range(-1, $1))", 3+records), 3)
}
