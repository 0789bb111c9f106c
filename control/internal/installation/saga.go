package installation

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// State is how far a saga is.
type State string

// The states, in their order; StateFailed is the other end.
const (
	StateOpened             State = "opened"
	StateWebhooksRegistered State = "webhooks_registered"
	StateBootstrapStarted   State = "bootstrap_started"
	StateCompleted          State = "completed"
	StateFailed             State = "failed"
)

// ended reports a state that a runner has nothing to do in.
func (s State) ended() bool { return s == StateCompleted || s == StateFailed }

// The attempts of one step, and the pauses between them. What another attempt is not worth by itself is tried a few
// times anyway: a credential that was just issued may not be known everywhere at the provider.
const (
	mostAttempts    = 12
	fewAttempts     = 3
	firstWait       = 2 * time.Second
	longestWait     = 5 * time.Minute
	leastRest       = 15 * time.Minute // of a saga that failed
	mostRest        = 24 * time.Hour
	leaseFor        = 40 * time.Second // longer than any one call
	reasonClosed    = "store_closed"
	reasonInternal  = string(provider.ReasonInternal)
	reasonExhausted = "unavailable"
)

// Lease is the right to take a saga on. Token is of one holder.
type Lease struct {
	ID    ident.InstallationID
	Epoch int
	Token string
}

// Saga is an installation as its runner needs it.
type Saga struct {
	ConnectionID ident.ConnectionID
	Provider     string
	AppID        string
	State        State
	Attempts     int           // of the step that State waits for
	Age          time.Duration // since the store was installed, last
}

// Failure is what became of an attempt. Wait is until the next one, of a final one until the saga is tried once more.
type Failure struct {
	Reason string
	Wait   time.Duration
	Final  bool
}

// LastAttempt is how many attempts a saga that is tried once more has behind it: one that fails is the last.
const LastAttempt = mostAttempts - 1

// SagaStore is where sagas live. Each of Renew, Advance and Fail reports false, and changes nothing, when the lease is
// not the holder's any more.
type SagaStore interface {
	// Acquire takes the lease when nobody holds it. It reports false when somebody does, when the saga has ended, when its
	// next attempt is not due, and when it is of another epoch.
	Acquire(ctx context.Context, l Lease, lasts time.Duration) (Saga, bool, error)
	Renew(ctx context.Context, l Lease, lasts time.Duration) (bool, error)
	// Advance moves the saga to its next state; an ended one gives the lease back.
	Advance(ctx context.Context, l Lease, to State) (bool, error)
	// Fail notes the failure and gives the lease back.
	Fail(ctx context.Context, l Lease, f Failure) (bool, error)
	// Endpoints returns the endpoints of the connection after it got those that it lacks.
	Endpoints(ctx context.Context, c ident.ConnectionID, wanted []Endpoint) ([]Endpoint, error)
}

// Shops opens shops; it returns shop.ErrClosed for one that may not be called.
type Shops interface {
	Open(ctx context.Context, c ident.ConnectionID) (shop.Opened, error)
}

// Loads opens the first load of a connection. One that runs is as good.
type Loads interface {
	Start(ctx context.Context, c ident.ConnectionID) error
}

// RunnerConfig is what a Runner is made of.
type RunnerConfig struct {
	Store    SagaStore
	Shops    Shops
	Loads    Loads
	Webhooks *Webhooks
	Metrics  *Metrics
	Logger   *slog.Logger
}

// Runner takes sagas on.
type Runner struct{ cfg RunnerConfig }

// NewRunner returns a Runner.
func NewRunner(cfg RunnerConfig) *Runner { return &Runner{cfg: cfg} }

// errLeaseLost ends a runner whose saga is another's.
var errLeaseLost = errors.New("installation: the lease is lost")

// Run takes a saga as far as it goes. again is when to come back; 0 says that there is nothing to do, or that somebody
// else does it. It may be called at any time, by any number of processes.
func (r *Runner) Run(ctx context.Context, id ident.InstallationID, epoch int) (again time.Duration, err error) {
	l := Lease{ID: id, Epoch: epoch, Token: rand.Text()}
	saga, held, err := r.cfg.Store.Acquire(ctx, l, leaseFor)
	if err != nil || !held {
		return 0, err
	}
	for !saga.State.ended() {
		next, err := r.step(ctx, l, saga)
		if errors.Is(err, errLeaseLost) || ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if err != nil {
			return r.failed(ctx, l, saga, err)
		}
		held, err := r.cfg.Store.Advance(ctx, l, next)
		if err != nil || !held {
			return 0, err
		}
		r.cfg.Metrics.advanced(saga.Provider, next)
		saga.State, saga.Attempts = next, 0
	}
	return 0, nil
}

// step does what a state waits for and returns the next one.
func (r *Runner) step(ctx context.Context, l Lease, saga Saga) (State, error) {
	switch saga.State {
	case StateOpened:
		return StateWebhooksRegistered, r.register(ctx, l, saga)
	case StateWebhooksRegistered:
		return StateBootstrapStarted, r.cfg.Loads.Start(ctx, saga.ConnectionID)
	case StateBootstrapStarted:
		return StateCompleted, nil
	}
	return "", fmt.Errorf("installation: state %q has no step", saga.State)
}

// register makes the provider's subscriptions those that are wanted. Before each call the lease is made to last, so that
// two runners never make them side by side.
func (r *Runner) register(ctx context.Context, l Lease, saga Saga) error {
	opened, err := r.cfg.Shops.Open(ctx, saga.ConnectionID)
	if err != nil {
		return err
	}
	_, err = r.cfg.Webhooks.Reconcile(ctx, opened, saga.AppID, func(ctx context.Context) error {
		held, err := r.cfg.Store.Renew(ctx, l, leaseFor)
		if err == nil && !held {
			return errLeaseLost
		}
		return err
	})
	return err
}

// failed notes why an attempt failed and says when the next one is.
func (r *Runner) failed(ctx context.Context, l Lease, saga Saga, cause error) (again time.Duration, err error) {
	f := failureOf(cause, saga.Attempts+1)
	if f.Final {
		f.Wait = min(max(saga.Age, leastRest), mostRest)
	}
	r.cfg.Metrics.failed(saga.Provider, f)
	r.cfg.Logger.Warn("an installation failed to go on", "installation_id", string(l.ID), "connection_id", string(saga.ConnectionID),
		"state", string(saga.State), "reason", f.Reason, "attempt", saga.Attempts+1, "final", f.Final)
	held, err := r.cfg.Store.Fail(ctx, l, f)
	if err != nil || !held || f.Final {
		return 0, err
	}
	return f.Wait, nil
}

// failureOf judges the error of an attempt, the first being 1. What it tells is a word of a closed set.
func failureOf(cause error, attempt int) Failure {
	after, worth := provider.Retry(cause)
	f := Failure{Reason: string(provider.ReasonOf(cause)), Wait: max(after, wait(attempt))}
	switch {
	case errors.Is(cause, shop.ErrClosed):
		f.Reason = reasonClosed
		f.Final = true
		return f
	case fault.Is(cause, fault.ServiceUnavailable):
		f.Reason, worth = reasonExhausted, true
	case f.Reason == reasonInternal:
		worth = true // ours, not the provider's
	}
	f.Final = attempt >= mostAttempts || !worth && attempt >= fewAttempts
	return f
}

// wait doubles from attempt to attempt.
func wait(attempt int) time.Duration {
	return min(firstWait<<min(attempt-1, 10), longestWait)
}
