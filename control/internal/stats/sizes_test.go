package stats

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestSizesAreShown(t *testing.T) {
	t.Parallel()
	s, r := &store{}, prometheus.NewRegistry()
	c := New(Config{Store: s, Logger: slog.New(slog.DiscardHandler)}, r)
	s.sizes = Sizes{Database: 100, Tables: map[string]Table{"relay.ledger": {90, 7, 2}}}
	c.collectSizes(t.Context())
	want := `# HELP storefront_postgres_table_dead_rows Deleted and replaced rows of a table that VACUUM has not removed, by the same statistics.
# TYPE storefront_postgres_table_dead_rows gauge
storefront_postgres_table_dead_rows{table="relay.ledger"} 2
# HELP storefront_postgres_table_rows Live rows of a table, as PostgreSQL's statistics estimate them.
# TYPE storefront_postgres_table_rows gauge
storefront_postgres_table_rows{table="relay.ledger"} 7
`
	names := []string{"storefront_postgres_table_rows", "storefront_postgres_table_dead_rows"}
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
	if s.err = errAway; testutil.CollectAndCount(c.sizes.database) != 1 {
		t.Error("the size of the database is missing")
	}
	c.collectSizes(t.Context())
	n := testutil.CollectAndCount(c.sizes.database) + testutil.CollectAndCount(c.sizes.tableBytes)
	if n != 0 {
		t.Errorf("%d sizes are shown that could not be read", n)
	}
}

func TestAgeOfTheOldestSnapshot(t *testing.T) {
	t.Parallel()
	var h horizon
	began := time.Now()
	for _, step := range []struct {
		minute       int
		next, oldest int64
		want         int
	}{
		{0, 100, 40, 0}, // older than the first note
		{1, 110, 40, 1},
		{2, 120, 115, 1},
		{3, 120, 120, 0},
		{4, 130, 120, 1},
		{5, 140, 120, 2}, // the snapshot was taken at minute 3 or later
		{6, 150, 149, 1},
		{7, 150, 150, 0},
	} {
		at := began.Add(time.Duration(step.minute) * time.Minute)
		if got := h.age(at, step.next, step.oldest); got != time.Duration(step.want)*time.Minute {
			t.Errorf("minute %d: %v, want %d minutes", step.minute, got, step.want)
		}
	}
	for i := range 3 * mostNotes {
		h.age(began.Add(time.Duration(8+i)*time.Minute), int64(200+i), 150)
	}
	if got := h.age(began.Add(24*time.Hour*30), 1e6, 150); len(h.notes) > mostNotes ||
		got != 24*time.Hour*30-7*time.Minute {
		t.Errorf("%d notes, %v", len(h.notes), got)
	}
}
