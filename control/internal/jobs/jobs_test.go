package jobs

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"go.uber.org/goleak"

	"storefront.internal/control/internal/installation"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/testkit"
)

type pushFunc func() error

func (f pushFunc) Publish(context.Context) error { return f() }

type noArchive struct{}

func (noArchive) EnsurePartitions(_ context.Context, days int) (int, error)    { return days, nil }
func (noArchive) DropPartitions(context.Context, time.Time) (int, bool, error) { return 0, false, nil }

func TestKeyPushTriesAgainSoonAndForLong(t *testing.T) {
	t.Parallel()
	w := &worker[keyPush]{}
	var all time.Duration
	for attempt := 1; attempt <= 100; attempt++ {
		before := time.Now()
		wait := w.NextRetry(&river.Job[keyPush]{JobRow: &rivertype.JobRow{Attempt: attempt,
			MaxAttempts: retryForever}}).Sub(before)
		if wait <= 0 || wait > 30*time.Second+time.Second || attempt == 1 && wait > 3*time.Second {
			t.Fatalf("attempt %d waits %v", attempt, wait)
		}
		all += wait
	}
	if weeks := all / 100 * retryForever; weeks < 4*24*time.Hour {
		t.Errorf("pushes give up after %v", weeks)
	}
	if n := (keyPush{}).InsertOpts().MaxAttempts; n > 32767 {
		t.Errorf("%d attempts do not fit River's column", n)
	}
}

func TestJobsRunUnderControlsRole(t *testing.T) {
	t.Parallel()
	pool := testkit.Pool(t, testkit.PostgresAs(t, testkit.PostgresWith(t, "river0510", Migrate),
		"storefront_control"))
	inserter, err := NewInserter(pool, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	pushed := make(chan struct{}, 10)
	var log strings.Builder
	runner := NewRunner(Config{Pool: pool, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Archive: noArchive{}, Keys: pushFunc(func() error {
			pushed <- struct{}{}
			return nil
		})})
	push := func(tx pgx.Tx, k ident.KeyID) error { return inserter.insert(t.Context(), tx, keyPush{k}) }
	rolledBack := errors.New("rolled back")
	err = pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := push(tx, "key_never"); err != nil {
			t.Error(err)
		}
		return rolledBack
	})
	if !errors.Is(err, rolledBack) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	for _, k := range []ident.KeyID{"key_1", "key_2"} {
		if err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error { return push(tx, k) }); err != nil {
			t.Fatal(err)
		}
		select {
		case <-pushed:
		case <-time.After(30 * time.Second):
			t.Fatalf("the job never ran\n%s", log.String())
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if len(pushed) > 0 {
		t.Error("a job ran that was rolled back")
	}
	if strings.Contains(log.String(), "denied") {
		t.Errorf("control's role does not suffice for River:\n%s", log.String())
	}
	if current, want, err := Version(t.Context(), pool); err != nil || current != want || want == 0 {
		t.Errorf("version %d of %d, %v", current, want, err)
	}
}

// A wake-up that arrives between the last step of a job and its sleep is not lost: another job runs.
func TestAWakeUpIsNotLostWhileTheSagaRuns(t *testing.T) {
	t.Parallel()
	pool := testkit.Pool(t, testkit.PostgresAs(t, testkit.PostgresWith(t, "river0510", Migrate),
		"storefront_control"))
	inserter, err := NewInserter(pool, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	saga := installation.Ref{ID: "ins_1", Epoch: 3}
	inTx := func(do func(tx pgx.Tx) error) {
		t.Helper()
		if err := pg.InTx(t.Context(), pool, do); err != nil {
			t.Fatal(err)
		}
	}
	wake := func(tx pgx.Tx) error { return inserter.WakeInstallation(t.Context(), tx, saga) }
	jobs := func(want string) {
		t.Helper()
		const states = `SELECT coalesce(string_agg(state::text || CASE WHEN scheduled_at > now() THEN ' later' ELSE '' END,
			', ' ORDER BY id), '') FROM control.river_job`
		var got string
		if err := pool.QueryRow(t.Context(), states).Scan(&got); err != nil || got != want {
			t.Errorf("jobs: %q %v, want %q", got, err, want)
		}
	}
	set := func(state, at string) {
		inTx(func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "UPDATE control.river_job SET attempt = 1, state = '"+state+
				"', scheduled_at = now() + '"+at+"'::interval")
			return err
		})
	}

	inTx(wake)
	jobs("available")
	set("scheduled", "1 hour")
	jobs("scheduled later")
	inTx(wake)
	jobs("available")
	set("running", "-1 second")
	inTx(wake)
	inTx(wake)
	jobs("running, available")
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
