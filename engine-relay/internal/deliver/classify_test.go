package deliver

import (
	"testing"

	"storefront.internal/shared/deliveries"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	f := func(kind deliveries.Kind, r Reply, want replyClass, wantResponded, wantBlameable bool) {
		t.Helper()
		got := classify(kind, r)
		if got != want || engineResponded(got) != wantResponded || blameable(got, r) != wantBlameable {
			t.Errorf("%s %+v: class %d responded %v blameable %v, want %d %v %v", kind, r,
				got, engineResponded(got), blameable(got, r), want, wantResponded, wantBlameable)
		}
	}
	both := func(r Reply, want replyClass, wantResponded, wantBlameable bool) {
		t.Helper()
		f(deliveries.Interaction, r, want, wantResponded, wantBlameable)
		f(deliveries.Envelope, r, want, wantResponded, wantBlameable)
	}
	status := func(n int) Reply { return Reply{Transmission: Answered, Status: n} }

	both(Reply{}, maybeSent, false, true)
	both(Reply{Transmission: NotSent}, retry, false, false)
	for _, n := range []int{400, 409, 410, 413, 422} {
		both(status(n), malformed, true, false)
	}
	both(status(401), unauthorized, true, false)
	for _, n := range []int{301, 302, 307, 308, 402, 403, 404, 405, 408, 418, 429} {
		both(status(n), retry, false, false)
	}
	for _, n := range []int{500, 502, 503, 504, 599} {
		both(status(n), retry, false, true)
	}
	for _, n := range []int{201, 204, 206} {
		both(status(n), maybeSent, false, true)
	}
	f(deliveries.Envelope, status(202), accepted, true, false)
	f(deliveries.Interaction, status(202), maybeSent, false, true)
	f(deliveries.Envelope, status(200), maybeSent, false, true)
	f(deliveries.Interaction, status(200), maybeSent, false, true)
	f(
		deliveries.Interaction,
		Reply{Transmission: Answered, Status: 200, Results: []Result{{}, {}}},
		maybeSent,
		false,
		true,
	)
	f(
		deliveries.Interaction,
		Reply{Transmission: Answered, Status: 200, Results: []Result{{}, {Status: Exists}}},
		perItem,
		true,
		true,
	)
}
