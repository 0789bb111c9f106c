package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"storefront.internal/shared/ident"
)

// Holder disables the connection that a job works for: c, or that of the run or the installation. held is ""
// when there is none.
type Holder interface {
	HoldConnection(ctx context.Context, c ident.ConnectionID, run ident.RunID, i ident.InstallationID,
		reason string) (held ident.ConnectionID, err error)
}

// A job whose process dies while it runs is rescued by River, which adds this error. Such a crash may be the
// job's fault, since it may need more memory than there is, or that of another job of the process. So a job
// that crashed runs alone among those that did: only the one at fault crashes again and again.
const rescuedError = "Stuck job rescued by JobRescuer"

const (
	maxCrashes    = 3                // within crashWindow park the job
	crashWindow   = time.Hour        // for which a crash counts
	aloneWindow   = 15 * time.Minute // after a crash, in which the job runs alone
	aloneRetry    = 5 * time.Second  // until a job that must run alone tries again
	parkedSnooze  = time.Hour        // of a parked job that works for no shop
	parkedMessage = "a job was parked: its process died each time it ran"
)

// errParked cancels a parked job. Its connection is disabled; work for it is found again when it is enabled.
var errParked = errors.New("jobs: parked after crashes")

// crashGuard is River's middleware that parks jobs whose process dies.
type crashGuard struct {
	river.MiddlewareDefaults
	holder  Holder
	metrics *Metrics
	logger  *slog.Logger
	alone   chan struct{} // holds one element while a job runs alone
}

func newCrashGuard(h Holder, m *Metrics, logger *slog.Logger) *crashGuard {
	return &crashGuard{holder: h, metrics: m, logger: logger, alone: make(chan struct{}, 1)}
}

// Work implements rivertype.WorkerMiddleware.
func (g *crashGuard) Work(ctx context.Context, job *rivertype.JobRow,
	work func(context.Context) error) error {
	crashes, last := countCrashes(job, time.Now())
	switch {
	case crashes == 0:
		return work(ctx)
	case crashes >= maxCrashes:
		return g.park(ctx, job)
	case time.Since(last) > aloneWindow:
		return work(ctx)
	}
	select {
	case g.alone <- struct{}{}:
		defer func() { <-g.alone }()
		return work(ctx)
	default:
		return river.JobSnooze(aloneRetry)
	}
}

// countCrashes returns how often the job's process died within crashWindow, and when it did last.
func countCrashes(job *rivertype.JobRow, now time.Time) (n int, last time.Time) {
	for i := range job.Errors {
		if e := &job.Errors[i]; e.Error == rescuedError && now.Sub(e.At) < crashWindow {
			n, last = n+1, e.At
		}
	}
	return n, last
}

// park ends the work for the connection of the job until an operator enables it. A job that calls no shop
// waits until its crashes do not count any more.
func (g *crashGuard) park(ctx context.Context, job *rivertype.JobRow) error {
	held, err := g.hold(ctx, job)
	if err != nil {
		return err
	}
	g.metrics.parked.WithLabelValues(job.Kind).Inc()
	g.logger.Error(parkedMessage, "kind", job.Kind, "job_id", job.ID, "crashes", maxCrashes,
		"connection_id", string(held))
	if held == "" {
		return river.JobSnooze(parkedSnooze)
	}
	return river.JobCancel(errParked)
}

// hold disables the connection of a job that calls a shop.
func (g *crashGuard) hold(ctx context.Context, job *rivertype.JobRow) (ident.ConnectionID, error) {
	if !callsShop(job.Kind) || g.holder == nil {
		return "", nil
	}
	var args struct {
		ConnectionID   ident.ConnectionID   `json:"connection_id"`
		RunID          ident.RunID          `json:"bootstrap_run_id"`
		InstallationID ident.InstallationID `json:"installation_id"`
	}
	if err := json.Unmarshal(job.EncodedArgs, &args); err != nil {
		return "", fmt.Errorf("arguments of a job: %w", err)
	}
	return g.holder.HoldConnection(ctx, args.ConnectionID, args.RunID, args.InstallationID,
		fmt.Sprintf("job %d (%s) ended its process %d times", job.ID, job.Kind, maxCrashes))
}

func callsShop(kind string) bool {
	switch kind {
	case refresh{}.Kind(), shopCheck{}.Kind(), bootstrapRun{}.Kind(), catchUp{}.Kind(),
		installationSaga{}.Kind(), subscriptionCheck{}.Kind():
		return true
	}
	return false
}
