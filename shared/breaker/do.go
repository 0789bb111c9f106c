package breaker

import (
	"context"
	"errors"
	"time"
)

// ErrOpen is the error of a call that was not made, because the Breaker is open.
var ErrOpen = errors.New("breaker: calls keep failing, so this one was not made")

// Do makes a call with a limit on its time, for calls to something that may hang. What counts as a failure is
// a call that ran out of that time, and a probe that failed in any way. Another error says nothing: it came
// at once, so it cost the caller no time. Neither does a call whose ctx ended first.
func (b *Breaker) Do(ctx context.Context, limit time.Duration, call func(ctx context.Context) error) error {
	permit, ok := b.Acquire()
	if !ok {
		return ErrOpen
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := call(limited)
	switch {
	case err == nil:
		b.Success()
	case ctx.Err() != nil:
		permit.Release()
	case limited.Err() != nil || permit.Probe():
		b.Failure(0)
	}
	return err
}
