package stats

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

type store struct {
	figures Figures
	sizes   Sizes
	err     error
}

var errAway = errors.New("away")

func (s *store) Sizes(context.Context) (Sizes, error) { return s.sizes, s.err }

func (s *store) Figures(context.Context, Limits) (Figures, error) { return s.figures, s.err }

func TestCensusShowsWhatItReadsAndNothingElse(t *testing.T) {
	t.Parallel()
	s, r := &store{}, prometheus.NewRegistry()
	c := New(Config{Store: s, Logger: slog.New(slog.DiscardHandler)}, r)
	f := func(want string, names ...string) {
		t.Helper()
		c.Collect(t.Context())
		if err := testutil.GatherAndCompare(r, strings.NewReader(want), names...); err != nil {
			t.Error(err)
		}
	}
	s.figures = Figures{
		Installations: map[string]int{"completed": 7, "opened": 1}, OldestInstallation: 90 * time.Second,
		Bootstraps: map[string]int{"running": 2},
		Jobs:       map[Job]int{{"push", "available"}: 3}, DaysAhead: 6,
	}
	f(`# HELP storefront_control_jobs Jobs that are not finished, and discarded ones, by queue and state.
# TYPE storefront_control_jobs gauge
storefront_control_jobs{queue="push",state="available"} 3
# HELP storefront_control_oldest_installation_seconds Age of the oldest installation that is neither completed nor failed; 0 without one.
# TYPE storefront_control_oldest_installation_seconds gauge
storefront_control_oldest_installation_seconds 90
# HELP storefront_control_partition_days_ahead Whole days ahead for which the archive and the webhook events have their partitions.
# TYPE storefront_control_partition_days_ahead gauge
storefront_control_partition_days_ahead 6
`, "storefront_control_jobs", "storefront_control_oldest_installation_seconds", "storefront_control_partition_days_ahead")
	s.err = errAway
	f(`# HELP storefront_control_census_up 1 while the figures can be read from PostgreSQL; at 0 they are left out.
# TYPE storefront_control_census_up gauge
storefront_control_census_up 0
`)
}
