package deliver

import (
	"testing"
	"time"

	"storefront.internal/shared/deliveries"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	f := func(kind deliveries.Kind, r Reply, want verdict, wantAlive, wantIsolates bool) {
		t.Helper()
		got := judge(kind, r)
		if got != want || alive(got) != wantAlive || isolates(got, r) != wantIsolates {
			t.Errorf("%s %+v: verdict %d alive %v isolates %v, want %d %v %v", kind, r, got, alive(got), isolates(got, r), want, wantAlive, wantIsolates)
		}
	}
	both := func(r Reply, want verdict, wantAlive, wantIsolates bool) {
		t.Helper()
		f(deliveries.Interaction, r, want, wantAlive, wantIsolates)
		f(deliveries.Envelope, r, want, wantAlive, wantIsolates)
	}
	status := func(n int) Reply { return Reply{Sent: Answered, Status: n} }

	both(Reply{}, doubtful, false, true)
	both(Reply{Sent: NotSent}, retry, false, false)
	for _, n := range []int{400, 409, 410, 413, 422} {
		both(status(n), malformed, true, false)
	}
	both(status(401), refused, true, false)
	for _, n := range []int{301, 302, 307, 308, 402, 403, 404, 405, 408, 418, 429} {
		both(status(n), retry, false, false)
	}
	for _, n := range []int{500, 502, 503, 504, 599} {
		both(status(n), retry, false, true)
	}
	for _, n := range []int{201, 204, 206} {
		both(status(n), doubtful, false, true)
	}
	f(deliveries.Envelope, status(202), accepted, true, false)
	f(deliveries.Interaction, status(202), doubtful, false, true)
	f(deliveries.Envelope, status(200), doubtful, false, true)
	f(deliveries.Interaction, status(200), doubtful, false, true)
	f(deliveries.Interaction, Reply{Sent: Answered, Status: 200, Results: []Result{{}, {}}}, doubtful, false, true)
	f(deliveries.Interaction, Reply{Sent: Answered, Status: 200, Results: []Result{{}, {Status: Exists}}}, each, true, true)
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	b := Backoff{Min: time.Second, Max: time.Hour}
	f := func(n int, jitter float64, want time.Duration) {
		t.Helper()
		if got := b.After(n, jitter); got != want {
			t.Errorf("after %d with jitter %v: %v, want %v", n, jitter, got, want)
		}
	}
	f(0, 0, time.Second)
	f(1, 0, time.Second)
	f(1, 0.5, 750*time.Millisecond)
	f(2, 0, 2*time.Second)
	f(8, 0, 128*time.Second)
	f(12, 0, 2048*time.Second)
	f(13, 0, time.Hour)
	f(1_000_000, 0, time.Hour)
	f(1_000_000, 1, 30*time.Minute)
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	b := &breaker{threshold: 3, backoff: Backoff{Min: time.Second, Max: 8 * time.Second}, jitter: func() float64 { return 0 }}
	ask := func(want pass) {
		t.Helper()
		if got, n := b.ask(now); got != want || (n != 0) != (want == probe) {
			t.Fatalf("ask: %d, want %d", got, want)
		}
	}
	pass := func(d time.Duration) { now = now.Add(d) }

	b.failure(now, 0)
	b.failure(now, 0)
	b.success()
	b.failure(now, 0)
	b.failure(now, 0)
	ask(open)
	b.failure(now, 0) // the third in a row
	ask(shut)
	b.failure(now, 0) // was under way: moves nothing
	pass(time.Second)
	ask(probe)
	ask(shut) // one at a time
	b.pardon(7)
	ask(shut) // another's
	b.pardon(1)
	ask(probe)
	for _, wait := range []time.Duration{2, 4, 8, 8} {
		b.failure(now, 0)
		pass(wait*time.Second - 1)
		ask(shut)
		pass(1)
		ask(probe)
	}
	b.success()
	ask(open)

	b.failure(now, time.Minute) // the engine's word opens at once
	ask(shut)
	b.failure(now, 2*time.Minute) // under way, and a longer word
	pass(2*time.Minute - 1)
	ask(shut)
	pass(1)
	ask(probe)
	b.success()
	b.failure(now, 0)
	b.failure(now, 0)
	ask(open)
}
