package claims

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"storefront.internal/edge/internal/deadline"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/telemetry"
)

// ErrHeld says that the request's deadline passed while another attempt held one of its claims.
var ErrHeld = errors.New("claims: another attempt held a claim until the deadline")

// ErrTakenOver says that another attempt took over, or may have taken over, the claims of this one. It may
// have recorded the same signals and said so.
var ErrTakenOver = errors.New("claims: another attempt took over the claims")

// Config is what a Claimer needs.
type Config struct {
	Store        Store
	Deadline     time.Duration // of a request
	Random       func() uint64 // of priorities and pauses; nil: rand.Uint64
	Logger       *slog.Logger
	ObserveWait  func(time.Duration) // for the claims of others
	CountDropped func()              // of statuses that could not be written
}

// Claimer runs the protocol for the requests of one process. It is safe for concurrent use.
type Claimer struct {
	cfg      Config
	store    Store
	resolver *resolver
	prefix   string
	counter  atomic.Uint64
	logs     *telemetry.Throttle[struct{}]
}

// New returns a Claimer. Close it after the last call.
func New(cfg Config) *Claimer {
	if cfg.Random == nil {
		cfg.Random = mathrand.Uint64
	}
	var random [12]byte
	_, _ = rand.Read(random[:]) // never fails: the runtime ends the process instead
	return &Claimer{cfg: cfg, store: cfg.Store, resolver: newResolver(cfg.Store, cfg.CountDropped),
		prefix: base64.RawURLEncoding.EncodeToString(random[:]) + "-",
		logs:   telemetry.NewThrottle[struct{}](time.Second, 1)}
}

// Close writes, until ctx ends, the statuses that are still to be written.
func (c *Claimer) Close(ctx context.Context) { c.resolver.close(ctx) }

// newHolder returns a new attempt of that priority. Its id is a random prefix of the process, and a counter.
func (c *Claimer) newHolder(priority uint32) holder {
	var buf [64]byte
	id := strconv.AppendUint(append(buf[:0], c.prefix...), c.counter.Add(1), 36)
	text := string(strconv.AppendUint(append(id, ':'), uint64(priority), 10))
	return holder{text: text, attempt: text[:len(id)], priority: priority}
}

// Start begins the attempt a for the keys.
func (c *Claimer) Start(a *Attempt, keys []Key) {
	a.holder = c.newHolder(uint32(c.cfg.Random()))
	a.keys, a.started = keys, time.Now()
	a.states = append(a.states[:0], make([]KeyState, len(keys))...)
}

// Claim claims every key: afterwards it is Held by a, or Recorded. It ends with ctx's deadline.
//
// A claim that another attempt holds is decided by the status of that attempt. Done: the signal is recorded.
// Released or lost: the claim is taken over by compare-and-swap. Open and younger than TakeoverAfter: the
// signal is being recorded; of two requests that wait for each other the one of lower priority releases its
// own claims, so no cycle of waiting can form, and the one of highest priority never releases, so none
// starves. Open and older: the holder is dead or stalled; lost is written first, and a holder that wakes up
// finds it and does not answer accepted.
//
// After an error the attempt is over: released is written in the background, as a call that failed may have
// claimed keys all the same.
func (c *Claimer) Claim(ctx context.Context, a *Attempt) error {
	start := time.Now()
	waited := false
	err := c.claimPending(ctx, a)
	for err == nil {
		var next action
		if next, err = c.settleOthers(ctx, a); err != nil || next == finish {
			break
		}
		if next == yieldWait {
			err = c.yield(ctx, a)
		}
		if next != retry && err == nil {
			waited = true
			if backoff.Sleep(ctx, c.pause()) != nil {
				err = ErrHeld
			}
		}
		if err == nil {
			err = c.claimPending(ctx, a)
		}
	}
	if waited {
		c.cfg.ObserveWait(time.Since(start))
	}
	if err != nil {
		c.ReleaseLater(a)
	}
	return err
}

func (c *Claimer) pause() time.Duration {
	return minPause + time.Duration(c.cfg.Random()%uint64(maxPause-minPause))
}

// yield releases the claims of the attempt and begins another attempt of the same priority.
func (c *Claimer) yield(ctx context.Context, a *Attempt) error {
	err := c.store.Resolve(ctx, []string{a.attempt}, Released, make([]Status, 1))
	if err == nil {
		a.restart(c.newHolder(a.priority))
	}
	return err
}

// claimPending claims what is pending. A claim that names this attempt already is its own: a command may be
// sent twice.
func (c *Claimer) claimPending(ctx context.Context, a *Attempt) error {
	keys, indexes := a.pending()
	if len(keys) == 0 {
		return nil
	}
	a.scratchPrevious = append(a.scratchPrevious[:0], make([]string, len(keys))...)
	memory, err := c.store.Claim(ctx, keys, a.text, a.scratchPrevious)
	if err != nil {
		return err
	}
	a.memory = max(a.memory, memory)
	a.others = a.others[:0]
	for i, value := range a.scratchPrevious {
		if h := parseHolder(value); value == "" || h.attempt == a.attempt {
			a.states[indexes[i]] = Held
		} else {
			a.others = append(a.others, heldClaim{holder: h, key: keys[i], index: indexes[i]})
		}
	}
	return nil
}

// settleOthers inspects the attempts that hold the other claims, and takes over the claims that are free to
// be taken.
func (c *Claimer) settleOthers(ctx context.Context, a *Attempt) (action, error) {
	if len(a.others) == 0 {
		return finish, nil
	}
	if err := c.inspect(ctx, a); err != nil {
		return finish, err
	}
	if err := c.markLost(ctx, a); err != nil {
		return finish, err
	}
	if err := c.takeOver(ctx, a); err != nil {
		return finish, err
	}
	return a.next(), nil
}

// inspect reads the statuses of the other attempts and the ages of their claims. An age may be that of a
// later holder; that makes it too young and never too old.
func (c *Claimer) inspect(ctx context.Context, a *Attempt) error {
	attempts := a.otherAttempts(func(*heldClaim) bool { return true })
	statuses := make([]Status, len(attempts))
	keys := make([]Key, len(a.others))
	ages := make([]time.Duration, len(a.others))
	for i := range a.others {
		keys[i] = a.others[i].key
	}
	if err := c.store.Inspect(ctx, attempts, statuses, keys, ages); err != nil {
		return err
	}
	a.setStatuses(attempts, statuses)
	for i := range a.others {
		a.others[i].expired = ages[i] >= TakeoverAfter
	}
	return nil
}

// markLost writes lost for open attempts with an expired claim. One that ended meanwhile keeps its status.
func (c *Claimer) markLost(ctx context.Context, a *Attempt) error {
	attempts := a.otherAttempts(func(o *heldClaim) bool { return o.status == Open && o.expired })
	if len(attempts) == 0 {
		return nil
	}
	statuses := make([]Status, len(attempts))
	if err := c.store.Resolve(ctx, attempts, Lost, statuses); err != nil {
		return err
	}
	for i := range statuses {
		if statuses[i] == Open {
			statuses[i] = Lost
		}
	}
	a.setStatuses(attempts, statuses)
	return nil
}

// takeOver takes over the claims of released and lost attempts.
func (c *Claimer) takeOver(ctx context.Context, a *Attempt) error {
	var keys []Key
	var from []string
	var indexes []int
	for i := range a.others {
		if o := &a.others[i]; o.status == Released || o.status == Lost {
			keys, from, indexes = append(keys, o.key), append(from, o.text), append(indexes, o.index)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	swapped := make([]bool, len(keys))
	if err := c.store.CompareAndSwap(ctx, keys, from, a.text, swapped); err != nil {
		return err
	}
	for i, ok := range swapped {
		if ok {
			a.states[indexes[i]] = Held
		}
	}
	return nil
}

// Confirm writes done, even when the request's deadline is over. A failure of Redis is no error, as the
// signals are recorded: done is written in the background. ErrTakenOver means that another attempt took over,
// or may have done so because too much time went by, so that it is unknown which of the two is to answer
// accepted: a resend finds out.
func (c *Claimer) Confirm(ctx context.Context, a *Attempt) error {
	previous, err := c.resolve(ctx, a, Done)
	if err != nil && time.Since(a.started) > c.cfg.Deadline {
		previous, err = c.resolve(ctx, a, Done) // the time may have run out while the process was stopped
	}
	if err == nil {
		if previous == Lost {
			return ErrTakenOver
		}
		return nil
	}
	c.resolver.enqueue(a.attempt, Done)
	if time.Since(a.started) > TakeoverAfter-resolveTimeout {
		return errors.Join(ErrTakenOver, err)
	}
	c.logs.Log(c.cfg.Logger, slog.LevelWarn, struct{}{},
		"done is not written in Redis yet; it is tried again",
		slog.Any("error", err))
	return nil
}

// Release gives up the attempt's claims, even when the request's deadline is over, so that a resend can take
// them over at once.
func (c *Claimer) Release(ctx context.Context, a *Attempt) {
	if _, err := c.resolve(ctx, a, Released); err != nil {
		c.ReleaseLater(a)
	}
}

// ReleaseLater gives up the attempt's claims in the background.
func (c *Claimer) ReleaseLater(a *Attempt) { c.resolver.enqueue(a.attempt, Released) }

func (c *Claimer) resolve(ctx context.Context, a *Attempt, status Status) (Status, error) {
	own := deadline.New(context.WithoutCancel(ctx), time.Now().Add(resolveTimeout))
	defer own.End()
	a.scratchAttempt[0] = a.attempt
	err := c.store.Resolve(own, a.scratchAttempt[:], status, a.scratchStatus[:])
	return a.scratchStatus[0], err
}
