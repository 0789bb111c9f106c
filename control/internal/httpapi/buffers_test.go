package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net/http/httptest"
	"testing"
	"testing/iotest"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/fault"
)

func TestBodiesGiveBackWhatTheyTook(t *testing.T) {
	t.Parallel()
	const budget = 1 << 20
	b := newBodyBuffers(budget, NewMetrics(prometheus.NewRegistry()))
	f := func(name string, sent io.Reader, length int64, want int, code fault.Code) {
		t.Helper()
		r := httptest.NewRequest("POST", "/", sent)
		r.ContentLength = length
		body, release, err := b.read(r, maxObservationsBody)
		if code != "" {
			if !fault.Is(err, code) || body != nil || release != nil {
				t.Errorf("%s: %v", name, err)
			}
		} else if err != nil || len(body) != want || b.free == budget && want > 0 {
			t.Errorf("%s: %d bytes, %d free, %v", name, len(body), b.free, err)
		} else {
			release()
		}
		if b.free != budget {
			t.Errorf("%s: %d are free", name, b.free)
		}
	}
	of := func(n int) io.Reader { return bytes.NewReader(make([]byte, n)) }
	f("empty", of(0), 0, 0, "")
	f("known", of(700_000), 700_000, 700_000, "")
	f("all of the budget", of(budget), budget, budget, "")
	f("beyond the budget", of(budget+1), budget+1, 0, fault.ServiceUnavailable)
	f("beyond the limit", of(0), maxObservationsBody+1, 0, fault.PayloadTooLarge)
	f("unknown and empty", of(0), -1, 0, "")
	f("unknown and one buffer", of(firstBuffer), -1, firstBuffer, "")
	f("unknown", of(700_000), -1, 700_000, "")
	f("unknown and beyond the budget", of(budget+1), -1, 0, fault.ServiceUnavailable)
	f("too short", of(10), 11, 0, fault.InvalidRequest)
	f("broken", iotest.ErrReader(errors.New("gone")), 11, 0, fault.InvalidRequest)
	f("broken without a length", io.MultiReader(of(700_000), iotest.ErrReader(errors.New("gone"))), -1, 0,
		fault.InvalidRequest)

	held := httptest.NewRequest("POST", "/", of(budget))
	_, release, err := b.read(held, maxObservationsBody)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/", of(1))
	if _, _, err := b.read(r, maxObservationsBody); !fault.Is(err, fault.ServiceUnavailable) ||
		fault.From(err).RetryAfter == 0 {
		t.Errorf("a spent budget: %v", err)
	}
	release()
	f("after that", of(1), 1, 1, "")
}
