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
	"storefront.internal/shared/ident"
)

// upload is a request with a body of a connection.
func upload(c ident.ConnectionID, sent io.Reader, length int64) *request {
	r := &request{http: httptest.NewRequest("POST", "/", sent), answer: httptest.NewRecorder(),
		params: params{connection: c}}
	r.http.ContentLength = length
	return r
}

func TestBodiesGiveBackWhatTheyTook(t *testing.T) {
	t.Parallel()
	const budget = 1 << 20
	b := newBodyBuffers(budget, budget, NewMetrics(prometheus.NewRegistry()).uploads)
	f := func(name string, sent io.Reader, length int64, want int, code fault.Code) {
		t.Helper()
		got, err := b.read(upload("con_1", sent, length), maxObservationsBody)
		if code != "" {
			if !fault.Is(err, code) || got != nil {
				t.Errorf("%s: %v", name, err)
			}
		} else if err != nil || len(got.body) != want || b.free == budget && want > 0 {
			t.Errorf("%s: %d free, %v", name, b.free, err)
		} else {
			got.release()
		}
		if b.free != budget || len(b.held) != 0 {
			t.Errorf("%s: %d are free, %v held", name, b.free, b.held)
		}
	}
	of := func(n int) io.Reader { return bytes.NewReader(make([]byte, n)) }
	f("empty", of(0), 0, 0, "")
	f("known", of(700_000), 700_000, 700_000, "")
	f("one buffer", of(firstBuffer), firstBuffer, firstBuffer, "")
	f("all of the budget", of(budget), budget, budget, "")
	f("beyond the budget", of(budget+1), budget+1, 0, fault.ServiceUnavailable)
	f("beyond the limit", of(0), maxObservationsBody+1, 0, fault.PayloadTooLarge)
	f("unknown and empty", of(0), -1, 0, "")
	f("unknown and one buffer", of(firstBuffer), -1, firstBuffer, "")
	f("unknown", of(700_000), -1, 700_000, "")
	f("unknown and beyond the budget", of(budget+1), -1, 0, fault.ServiceUnavailable)
	f("too short", of(10), 11, 0, fault.InvalidRequest)
	f("too short at the end of a part", of(2*firstBuffer), 700_000, 0, fault.InvalidRequest)
	f("broken", iotest.ErrReader(errors.New("gone")), 11, 0, fault.InvalidRequest)
	f("broken without a length", io.MultiReader(of(700_000), iotest.ErrReader(errors.New("gone"))), -1, 0,
		fault.InvalidRequest)

	held, err := b.read(upload("con_1", of(budget), budget), maxObservationsBody)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.read(upload("con_1", of(1), 1), maxObservationsBody)
	if !fault.Is(err, fault.ServiceUnavailable) || fault.From(err).RetryAfter == 0 {
		t.Errorf("a spent budget: %v", err)
	}
	held.release()
	f("after that", of(1), 1, 1, "")
}

func TestAConnectionHoldsItsShare(t *testing.T) {
	t.Parallel()
	b := newBodyBuffers(4<<20, 1<<20, NewMetrics(prometheus.NewRegistry()).uploads)
	read := func(c ident.ConnectionID) (*bodyBuffer, error) {
		return b.read(upload(c, bytes.NewReader(make([]byte, 1<<20)), 1<<20), maxObservationsBody)
	}
	first, err := read("con_1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read("con_1"); !fault.Is(err, fault.ServiceUnavailable) {
		t.Errorf("a second body of the connection: %v", err)
	}
	other, err := read("con_2")
	if err != nil {
		t.Fatalf("a body of another connection: %v", err)
	}
	other.release()
	first.release()
	if again, err := read("con_1"); err != nil {
		t.Errorf("after the first body: %v", err)
	} else {
		again.release()
	}
}
