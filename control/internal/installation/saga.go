package installation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// State is how far a saga is.
type State string

// The states in their order; StateFailed waits for one more attempt from the first step.
const (
	StateOpened             State = "opened"
	StateWebhooksRegistered State = "webhooks_registered"
	StateBootstrapStarted   State = "bootstrap_started"
	StateCompleted          State = "completed"
	StateFailed             State = "failed"
)

// The attempts of one step and the delays between them. An error that another attempt is not expected to cure
// gets a few attempts anyway: a provider may not know a new credential everywhere at once.
const (
	maxAttempts         = 12
	maxHopelessAttempts = 3
	firstDelay          = 2 * time.Second
	maxDelay            = 5 * time.Minute
	minRevivalDelay     = 15 * time.Minute // before a failed saga gets another attempt
	maxRevivalDelay     = 24 * time.Hour
)

// Reasons of failures that are not the provider's.
const (
	reasonClosed      = "store_closed"
	reasonInternal    = string(provider.ReasonInternal)
	reasonUnavailable = "unavailable"
)

// Ref names a saga. Epoch counts the installations of the same store, so a Ref of an earlier one names
// nothing.
type Ref struct {
	ID    ident.InstallationID
	Epoch int
}

// Saga is an installation as its runner needs it.
type Saga struct {
	Ref
	ConnectionID ident.ConnectionID
	Provider     string
	AppID        string
	State        State
	Attempts     int           // failed ones of the step that State waits for
	Age          time.Duration // since the store was last installed
	DueIn        time.Duration // until the next attempt; 0 or less when it is due
}

// Failure is what became of an attempt. Delay is the time until the next one.
type Failure struct {
	Reason string
	Delay  time.Duration
	Final  bool // the saga fails; the next attempt begins at the first step
}

// SagaStore is where sagas are stored. Current, Advance and Fail report false, and change nothing, when the
// saga no longer has the epoch and state of the given one: another runner advanced it, or the store was
// installed again.
type SagaStore interface {
	// Saga returns not_found for an installation that does not exist or has another epoch.
	Saga(ctx context.Context, r Ref) (Saga, error)
	Current(ctx context.Context, s Saga) (bool, error)
	Advance(ctx context.Context, s Saga, to State) (bool, error)
	Fail(ctx context.Context, s Saga, f Failure) (bool, error)
}

// Bootstraps opens the first bootstrap run of a connection. It does nothing while a run is unfinished.
type Bootstraps interface {
	Start(ctx context.Context, c ident.ConnectionID) error
}

// RunnerConfig is what a Runner is made of.
type RunnerConfig struct {
	Store         SagaStore
	Shops         *shop.Shops
	Bootstraps    Bootstraps
	Subscriptions *Subscriptions
	Metrics       *Metrics
	Logger        *slog.Logger
}

// Runner advances sagas.
type Runner struct{ cfg RunnerConfig }

// NewRunner returns a Runner.
func NewRunner(cfg RunnerConfig) *Runner { return &Runner{cfg: cfg} }

// errSuperseded ends a runner whose saga changed without it.
var errSuperseded = errors.New("installation: superseded")

// Run advances a saga as far as possible. snooze is the time until the next attempt, 0 when there is nothing
// left to do. It returns shop.ErrDisabled, and leaves the saga as it is, for a disabled connection. It may be
// called at any time, by any number of processes.
func (r *Runner) Run(ctx context.Context, ref Ref) (snooze time.Duration, err error) {
	saga, err := r.cfg.Store.Saga(ctx, ref)
	if fault.Is(err, fault.NotFound) || err == nil && saga.State == StateCompleted {
		return 0, nil
	}
	if err != nil || saga.DueIn > 0 {
		return saga.DueIn, err
	}
	for saga.State != StateCompleted {
		next, err := r.step(ctx, saga)
		if errors.Is(err, errSuperseded) || ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if errors.Is(err, shop.ErrDisabled) {
			return 0, err
		}
		if err != nil {
			return r.failed(ctx, saga, err)
		}
		current, err := r.cfg.Store.Advance(ctx, saga, next)
		if err != nil || !current {
			return 0, err
		}
		r.cfg.Metrics.advanced(saga.Provider, next)
		saga.State, saga.Attempts = next, 0
	}
	return 0, nil
}

// step does what a state waits for and returns the next state.
func (r *Runner) step(ctx context.Context, saga Saga) (State, error) {
	switch saga.State {
	case StateOpened, StateFailed:
		return StateWebhooksRegistered, r.register(ctx, saga)
	case StateWebhooksRegistered:
		return StateBootstrapStarted, r.cfg.Bootstraps.Start(ctx, saga.ConnectionID)
	case StateBootstrapStarted:
		return StateCompleted, nil
	}
	return "", fmt.Errorf("installation: state %q has no step", saga.State)
}

// register makes the provider's subscriptions those that are wanted. It checks before each call that the saga
// is current, so a runner that was given up for dead makes no subscriptions beside its successor.
func (r *Runner) register(ctx context.Context, saga Saga) error {
	opened, err := r.cfg.Shops.Open(ctx, saga.ConnectionID)
	if err != nil {
		return err
	}
	_, err = r.cfg.Subscriptions.Reconcile(ctx, opened, saga.AppID, func(ctx context.Context) error {
		current, err := r.cfg.Store.Current(ctx, saga)
		if err == nil && !current {
			return errSuperseded
		}
		return err
	})
	return err
}

// failed stores why an attempt failed and returns the time until the next one. A failed saga whose shop is
// closed keeps its reason; its next attempt comes when the shop is back.
func (r *Runner) failed(ctx context.Context, saga Saga, cause error) (snooze time.Duration, err error) {
	f := failureOf(cause, saga)
	if saga.State == StateFailed && f.Reason == reasonClosed {
		return f.Delay, nil
	}
	r.cfg.Metrics.failed(saga.Provider, f)
	r.cfg.Logger.Warn("a step of an installation failed", "installation_id", string(saga.ID),
		"connection_id", string(saga.ConnectionID), "state", string(saga.State), "reason", f.Reason,
		"attempt", saga.Attempts+1, "final", f.Final)
	current, err := r.cfg.Store.Fail(ctx, saga, f)
	if err != nil || !current {
		return 0, err
	}
	return f.Delay, nil
}

// failureOf classifies the error of an attempt. Its reason is a word of a closed set.
func failureOf(cause error, saga Saga) Failure {
	attempt := saga.Attempts + 1
	after, retryable := provider.RetryAfter(cause)
	policy := backoff.Policy{Min: firstDelay, Max: maxDelay}
	f := Failure{Reason: string(provider.ReasonOf(cause)), Delay: max(after, policy.Full(attempt))}
	closed := errors.Is(cause, shop.ErrClosed)
	switch {
	case closed:
		f.Reason = reasonClosed
	case fault.Is(cause, fault.ServiceUnavailable):
		f.Reason, retryable = reasonUnavailable, true
	case f.Reason == reasonInternal:
		retryable = true // our own error, not the provider's
	}
	f.Final = closed || saga.State == StateFailed || attempt >= maxAttempts || !retryable &&
		attempt >= maxHopelessAttempts
	if f.Final {
		f.Delay = min(max(saga.Age, minRevivalDelay), maxRevivalDelay)
	}
	return f
}
