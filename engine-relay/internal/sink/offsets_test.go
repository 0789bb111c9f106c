package sink

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"storefront.internal/shared/ident"
)

func TestWhereAPartitionBegins(t *testing.T) {
	t.Parallel()
	held := func(cluster string, next int64) *Held { return &Held{ClusterID: cluster, Next: next} }
	for name, tt := range map[string]struct {
		committed int64
		marked    bool
		held      *Held
		want      int64
	}{
		"a new group":                    {-1, false, nil, 10},
		"a new group, known offsets":     {-1, false, held("k", 70), 10},
		"the first upgrade":              {100, false, nil, 100},
		"after the release before":       {100, false, held("k", 70), 100},
		"an operator went back":          {50, false, held("k", 70), 50},
		"both agree":                     {100, true, held("k", 100), 100},
		"a commit of offsets failed":     {90, true, held("k", 100), 90},
		"restored":                       {100, true, held("k", 70), 70},
		"restored, Kafka lacks it":       {100, true, held("k", 5), 5},
		"restored to before the upgrade": {100, true, nil, 10},
		"restored to before a new Kafka": {100, true, held("other", 100), 10},
		"a new Kafka":                    {-1, false, held("other", 100), 10},
		"a mirror with its offsets":      {30, false, held("other", 100), 30},
	} {
		r := Resumption{Committed: tt.committed, Marked: tt.marked, First: 10}
		if got := r.Start("k", tt.held); got != tt.want {
			t.Errorf("%s: begins at %d, want %d", name, got, tt.want)
		}
	}
}

// TestOffsetsCoverOnlyWhatIsStored: PostgreSQL is restored to any commit of any division of a batch, and the
// offsets that it then has are of records whose signals it has.
func TestOffsetsCoverOnlyWhatIsStored(t *testing.T) {
	t.Parallel()
	rapid.Check(t, playRestore)
}

func playRestore(t *rapid.T) {
	poison := map[ident.SignalID]bool{}
	b := &Batch{}
	want := map[int64][]ident.SignalID{}
	records := rapid.IntRange(1, 8).Draw(t, "records")
	for n := range records {
		var ids []string
		for range rapid.IntRange(1, 4).Draw(t, "signals") {
			id := rapid.StringMatching("[a-f][0-3]").Draw(t, "id") // some come twice
			ids = append(ids, id)
			want[int64(n)] = append(want[int64(n)], ident.SignalID("sig_"+id))
			poison[ident.SignalID("sig_"+id)] = rapid.IntRange(0, 9).Draw(t, "poison") == 0
		}
		m := recordOf(n, ids...)
		m.From, m.To = int64(n), int64(n)+1
		if err := b.AddSignals(m); err != nil {
			t.Fatal(err)
		}
	}
	together := 1 << 10
	if rapid.Bool().Draw(t, "refused only together") {
		together = rapid.IntRange(2, 8).Draw(t, "this many")
		clear(poison)
	}
	m := &memory{refuse: func(ids []ident.SignalID) error {
		poisoned := slices.ContainsFunc(ids, func(id ident.SignalID) bool { return poison[id] })
		if len(ids) >= together || poisoned {
			return refused("22021")
		}
		return nil
	}}
	// A restore takes a later commit away; then the writer goes on.
	before := *m
	undo := rapid.IntRange(0, 20).Draw(t, "transactions before the restore")
	keep := rapid.IntRange(0, 20).Draw(t, "transactions before the backup")
	m.begin = func() error {
		if keep--; keep == 0 {
			before = *m
		}
		if undo--; undo == 0 {
			refuse, begin := m.refuse, m.begin
			*m = before
			m.refuse, m.begin = refuse, begin
		}
		return nil
	}
	b.Claim("member/1", nil)
	if err := over(m).Write(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	have := map[ident.SignalID]bool{}
	for _, id := range m.signals {
		if have[id] {
			t.Fatalf("%s is stored twice", id)
		}
		have[id] = true
	}
	for _, p := range m.parked {
		have[ident.SignalID(p.SignalID)] = true
	}
	for offset := range m.stored {
		for _, id := range want[offset] {
			// an offset whose record repeats another's signal counts on the other's offset
			if !have[id] && !slices.ContainsFunc(slices.Collect(maps.Keys(want)), func(o int64) bool {
				_, stored := m.stored[o]
				return o != offset && !stored && slices.Contains(want[o], id)
			}) {
				t.Fatalf("offset %d is stored, %s is not", offset, id)
			}
		}
	}
	if undo > 0 && len(m.stored) != records {
		t.Fatalf("%d of %d offsets are stored", len(m.stored), records)
	}
}

func TestATransactionThatFindsLessThanWasStored(t *testing.T) {
	t.Parallel()
	for least, behind := range map[int64]bool{0: false, 1: false, 2: true} {
		m, b := &memory{}, &Batch{}
		r := recordOf(0, "a")
		r.From, r.To = 0, 1
		if err := b.AddSignals(r); err != nil {
			t.Fatal(err)
		}
		b.Claim("member/1", map[Partition]int64{{"t", 0}: least})
		err := over(m).Write(t.Context(), b)
		if errors.Is(err, ErrBehind) != behind || (err != nil) != behind {
			t.Errorf("least %d: %v", least, err)
		}
		if stored := len(m.signals) == 1; stored == behind {
			t.Errorf("least %d: stored %v", least, stored)
		}
	}
}
