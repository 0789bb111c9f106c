package breaker

import (
	"testing"
	"time"

	"storefront.internal/shared/backoff"
)

// stand is a breaker with a clock that the test moves.
type stand struct {
	*Breaker
	t   *testing.T
	now time.Time
}

func newStand(t *testing.T, cfg Config) *stand {
	t.Helper()
	s := &stand{t: t, now: time.Unix(0, 0)}
	cfg.Now = func() time.Time { return s.now }
	s.Breaker = New(cfg)
	return s
}

func (s *stand) pass(want, probe bool) Permit {
	s.t.Helper()
	p, ok := s.Acquire()
	if ok != want || p.Probe() != probe {
		s.t.Errorf("permit %v, probe %v; want %v, %v", ok, p.Probe(), want, probe)
	}
	return p
}

func (s *stand) state(want State) {
	s.t.Helper()
	if got := s.State(); got != want {
		s.t.Errorf("state %d, want %d", got, want)
	}
}

func fixed(d time.Duration) backoff.Policy { return backoff.Policy{Min: d, Max: d} }

func TestOpensAfterFailuresInARowAndClosesAfterAProbe(t *testing.T) {
	t.Parallel()
	s := newStand(t, Config{Failures: 3, Open: fixed(time.Second)})
	s.Failure(0)
	s.Failure(0)
	s.Success()
	s.Failure(0)
	s.Failure(0)
	s.pass(true, false)
	s.state(Closed)
	s.Failure(0)
	s.state(Open)
	s.pass(false, false)
	if got := s.OpenFor(); got != time.Second {
		t.Errorf("open for %v", got)
	}
	s.now = s.now.Add(time.Second)
	if got := s.OpenFor(); got != 0 {
		t.Errorf("half-open: open for %v", got)
	}
	s.state(HalfOpen)
	s.pass(true, true)
	s.pass(false, false) // one probe at a time
	s.Failure(0)
	s.state(Open)
	s.now = s.now.Add(time.Second)
	s.pass(true, true)
	s.Success()
	s.state(Closed)
	s.pass(true, false)
	s.pass(true, false)
}

func TestOpenTimeGrowsWithEachFailedProbe(t *testing.T) {
	t.Parallel()
	s := newStand(t, Config{Open: backoff.Policy{Min: time.Second, Max: 4 * time.Second}})
	s.Failure(0)
	for _, full := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second} {
		open := s.until.Sub(s.now)
		if open < full/2 || open > full {
			t.Errorf("open for %v, want between %v and %v", open, full/2, full)
		}
		s.now = s.until
		s.pass(true, true)
		s.Failure(0)
	}
	s.Success()
	s.Failure(0)
	if open := s.until.Sub(s.now); open > time.Second {
		t.Errorf("a success did not reset the open time: %v", open)
	}
}

func TestRetryAfterOpensAtOnceAndOnlyExtends(t *testing.T) {
	t.Parallel()
	s := newStand(t, Config{Failures: 3, Open: fixed(time.Second)})
	s.Failure(10 * time.Second)
	s.state(Open)
	s.Failure(5 * time.Second) // sent before it opened
	s.Failure(0)
	s.now = s.now.Add(9 * time.Second)
	s.pass(false, false)
	s.Failure(3 * time.Second)
	s.now = s.now.Add(2 * time.Second)
	s.pass(false, false)
	s.now = s.now.Add(time.Second)
	s.pass(true, true)
}

func TestReleasedProbeLetsTheNextCallProbe(t *testing.T) {
	t.Parallel()
	s := newStand(t, Config{Open: fixed(time.Second)})
	closed := s.pass(true, false)
	s.Failure(0)
	s.now = s.now.Add(time.Second)
	first := s.pass(true, true)
	closed.Release() // was no probe
	s.pass(false, false)
	first.Release()
	second := s.pass(true, true)
	first.Release() // is not the probe under way any more
	s.pass(false, false)
	s.Success()
	second.Release()
	s.state(Closed)
}

func TestProbeWithoutAnOutcomeIsLostAfterItsTimeout(t *testing.T) {
	t.Parallel()
	s := newStand(t, Config{Open: fixed(time.Second), ProbeTimeout: 3 * time.Second})
	s.Failure(0)
	s.now = s.now.Add(time.Second)
	s.pass(true, true)
	s.now = s.now.Add(2 * time.Second)
	s.pass(false, false)
	s.now = s.now.Add(time.Second)
	s.pass(true, true)
	s.pass(false, false)
}
