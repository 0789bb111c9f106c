package sink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"storefront.internal/engine-relay/internal/cart"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func recordOf(n int, ids ...string) Message {
	r := &signal.Record{
		RecordID:     fmt.Sprintf("018f8b0e-0000-7000-8000-%012d", n),
		ConnectionID: "con_a",
		StoreID:      "str_a",
		ReceivedAt:   noon.Add(time.Duration(n) * time.Second),
	}
	for i, id := range ids {
		r.Signals = append(
			r.Signals,
			signal.Recorded{
				Index: i,
				Signal: signal.Signal{ID: ident.SignalID("sig_" + id), Type: signal.Click,
					OccurredAt: noon, DecisionID: "dec_a", ItemID: "itm_a"},
			},
		)
	}
	return Message{Topic: "t", Offset: int64(n), Value: signal.AppendRecord(nil, r)}
}

func TestAnUnknownVersionIsNotTakenAndNotParked(t *testing.T) {
	t.Parallel()
	b := &Batch{}
	for _, add := range []func(Message) error{b.AddSignals, b.AddDecision} {
		if err := add(Message{Value: []byte(`{"schema":3,"signals":[]}`)}); !errors.Is(
			err,
			signal.ErrUnknownSchema,
		) {
			t.Errorf("got %v", err)
		}
	}
	if len(b.parked)+len(b.signals)+len(b.decisions)+b.Size() > 0 {
		t.Errorf("the batch holds something: %+v", b)
	}
}

func TestABatchGoesInTheOrderOfArrival(t *testing.T) {
	t.Parallel()
	m := &memory{}
	stored(t, m, recordOf(3, "e", "b"), recordOf(1, "a", "b", "a"), recordOf(2, "c"))
	if want := []ident.SignalID{"sig_a", "sig_b", "sig_c", "sig_e"}; !slices.Equal(m.signals, want) {
		t.Errorf("stored %v, want %v", m.signals, want)
	}
	if m.commits != 1 || len(m.enqueued) != 4 {
		t.Errorf("%d transactions, %d deliveries", m.commits, len(m.enqueued))
	}
}

// TestWhateverIsRefusedTheRestIsStored: any set of poison signals, with any failures in between.
func TestWhateverIsRefusedTheRestIsStored(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		poison := map[ident.SignalID]bool{}
		var messages []Message
		var sound []ident.SignalID
		for n := range rapid.IntRange(1, 12).Draw(t, "records") {
			var ids []string
			for i := range rapid.IntRange(1, 5).Draw(t, "signals") {
				id := fmt.Sprintf("%02d_%d", n, i)
				ids = append(ids, id)
				if rapid.IntRange(0, 9).Draw(t, "poison") == 0 {
					poison[ident.SignalID("sig_"+id)] = true
				} else {
					sound = append(sound, ident.SignalID("sig_"+id))
				}
			}
			messages = append(messages, recordOf(n, ids...))
		}
		trouble := rapid.IntRange(0, 5).Draw(t, "trouble")
		m := &memory{begin: func() error {
			if trouble > 0 {
				trouble--
				return refused("57P03")
			}
			return nil
		}}
		m.refuse = func(ids []ident.SignalID) error {
			if slices.ContainsFunc(ids, func(id ident.SignalID) bool { return poison[id] }) {
				return refused("22021")
			}
			return nil
		}
		b := &Batch{}
		for _, message := range messages {
			if err := b.AddSignals(message); err != nil {
				t.Fatal(err)
			}
		}
		if err := over(m).Write(context.Background(), b); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(m.signals, sound) {
			t.Fatalf("stored %v, want %v", m.signals, sound)
		}
		if len(m.parked) != len(poison) || m.commits != 1 {
			t.Fatalf("parked %d of %d in %d transactions", len(m.parked), len(poison), m.commits)
		}
		for _, p := range m.parked {
			if !poison[ident.SignalID(p.SignalID)] || p.SQLState != "22021" || p.Reason != ReasonRefused {
				t.Fatalf("parked %+v", p)
			}
		}
	})
}

func TestWhatIsRefusedOnlyTogetherIsStoredApart(t *testing.T) {
	t.Parallel()
	m := &memory{refuse: func(ids []ident.SignalID) error {
		if slices.Contains(ids, "sig_a") && slices.Contains(ids, "sig_d") {
			return refused("23505")
		}
		return nil
	}}
	stored(t, m, recordOf(1, "a", "b"), recordOf(2, "c", "d"), Message{Value: []byte("no record")})
	if len(m.signals) != 4 || len(m.parked) != 1 || m.parked[0].Reason != ReasonUndecodable {
		t.Errorf("stored %v, parked %+v", m.signals, m.parked)
	}
}

// TestRefusedAloneAndTogether: any signals that are refused alone, beside any pairs that are refused only
// together.
func TestRefusedAloneAndTogether(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "signals")
		id := func(i int) string { return fmt.Sprintf("%02d", i) }
		alone := rapid.SliceOfN(rapid.IntRange(0, 9), n, n).Draw(t, "refused")
		var pairs [][2]ident.SignalID
		for range rapid.IntRange(1, 4).Draw(t, "pairs") {
			a, b := rapid.IntRange(0, n-1).Draw(t, "a"), rapid.IntRange(0, n-1).Draw(t, "b")
			if a != b {
				pairs = append(pairs, [2]ident.SignalID{ident.SignalID("sig_" + id(a)),
					ident.SignalID("sig_" + id(b))})
			}
		}
		var messages []Message
		poison := map[ident.SignalID]bool{}
		for i := 0; i < n; {
			var ids []string
			for range min(n-i, rapid.IntRange(1, 4).Draw(t, "of a request")) {
				poison[ident.SignalID("sig_"+id(i))] = alone[i] == 0
				ids = append(ids, id(i))
				i++
			}
			messages = append(messages, recordOf(len(messages), ids...))
		}
		tries := 0
		m := &memory{refuse: func(ids []ident.SignalID) error {
			if tries++; tries > 1000 {
				t.Fatal("it does not end")
			}
			if slices.ContainsFunc(ids, func(id ident.SignalID) bool { return poison[id] }) {
				return refused("22021")
			}
			for _, p := range pairs {
				if slices.Contains(ids, p[0]) && slices.Contains(ids, p[1]) {
					return refused("23505")
				}
			}
			return nil
		}}
		b := &Batch{}
		for _, message := range messages {
			if err := b.AddSignals(message); err != nil {
				t.Fatal(err)
			}
		}
		if err := over(m).Write(context.Background(), b); err != nil {
			t.Fatal(err)
		}
		for _, p := range m.parked {
			if !poison[ident.SignalID(p.SignalID)] {
				t.Fatalf("parked %+v", p)
			}
		}
		slices.Sort(m.signals)
		if len(m.signals)+len(m.parked) != n || len(slices.Compact(m.signals)) != n-len(m.parked) {
			t.Fatalf("stored %v, parked %d", m.signals, len(m.parked))
		}
	})
}

func TestALargeBatchIsHalvedBetweenRequests(t *testing.T) {
	t.Parallel()
	var sizes []int
	m := &memory{refuse: func(ids []ident.SignalID) error {
		if len(ids) > 4 {
			return refused("57014")
		}
		sizes = append(sizes, len(ids))
		return nil
	}}
	stored(t, m, recordOf(1, "a", "b", "c"), recordOf(2, "d"), recordOf(3, "e", "f", "g"))
	if !slices.Equal(sizes, []int{3, 4}) && !slices.Equal(sizes, []int{4, 3}) || len(m.signals) != 7 ||
		len(m.parked) != 0 {
		t.Errorf("stored %v in %v, parked %d", m.signals, sizes, len(m.parked))
	}
}

// The sink is not ready while a batch fails. It is again when the batch is given up, since another relay may
// have it then, and no further batch may come for long.
func TestWriteEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	attempts := 0
	var r *Writer
	m := &memory{begin: func() error {
		if attempts++; attempts == 3 {
			if r.Ready(ctx) == nil {
				t.Error("the sink says that it is ready while its batch fails")
			}
			cancel()
		}
		return refused("53300")
	}}
	b := &Batch{}
	if err := b.AddSignals(recordOf(1, "a")); err != nil {
		t.Fatal(err)
	}
	r = over(m)
	if err := r.Write(ctx, b); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := r.Ready(ctx); err != nil {
		t.Errorf("the sink is not ready after its batch was given up: %v", err)
	}
}

// FuzzInteraction: whatever texts a record carries, the body is JSON and says the same.
func FuzzInteraction(f *testing.F) {
	f.Add("№ 7", "vis_a", "ses_a", int32(3))
	f.Add("\x00\"\\\u2028<&>", "", "\xff", int32(-1))
	f.Fuzz(func(t *testing.T, order, visitor, session string, number int32) {
		s := &signal.Signal{
			ID:              "sig_a",
			Type:            signal.Purchase,
			OccurredAt:      noon,
			DecisionID:      "dec_a",
			ItemID:          "itm_a",
			OrderExternalID: order,
			Visitor: &signal.Visitor{
				VisitorID: ident.VisitorID(visitor),
				SessionID: ident.SessionID(session),
			},
			Position: &number,
			Quantity: &number,
		}
		e := &pendingSignal{
			signal: s,
			request: &request{
				record: &signal.Record{ConnectionID: "con_a", StoreID: "str_a", ReceivedAt: noon},
			},
		}
		body := appendInteraction(nil, e, &cart.Snapshot{Quantity: 2, Revision: 3}, []byte(`{"a":1}`))
		var got struct {
			Order    string `json:"order_external_id"`
			Position int32  `json:"position"`
			Visitor  *struct {
				ID      string `json:"visitor_id"`
				Session string `json:"session_id"`
			} `json:"visitor"`
			Line map[string]any `json:"cart_line"`
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if string([]rune(order)) != got.Order || got.Position != number || got.Line["revision"] != 3.0 {
			t.Errorf("%s", body)
		}
		if (got.Visitor == nil) != (visitor == "" && session == "") {
			t.Errorf("visitor: %s", body)
		}
	})
}
