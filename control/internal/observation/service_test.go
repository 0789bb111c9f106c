package observation

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/fault"
)

// gatedStore applies nothing, one batch after another when the test allows it.
type gatedStore struct {
	Store
	gate    chan struct{}
	working int
}

func (s *gatedStore) Apply(_ context.Context, b *Batch) ([]Outcome, error) {
	s.working++
	<-s.gate
	s.working--
	return make([]Outcome, len(b.Elements)), nil
}

// TestWorkOnBodiesWaits delivers bodies whose work exceeds the budget together, and alone.
func TestWorkOnBodiesWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		body := []byte(`{"observations":[{"entity":"category","external_id":"c","revision":1,` +
			`"document":{"name":{"en":"` + string(bytes.Repeat([]byte("z"), 1000)) +
			`"}}}]}`)
		store := &gatedStore{gate: make(chan struct{})}
		s := New(store, nil, NewMetrics(prometheus.NewRegistry()), time.Now, int64(15*len(body)))
		ended := make(chan error, 3)
		deliver := func(body []byte) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := s.Deliver(ctx, Source{}, body)
			ended <- err
		}
		go deliver(body)
		synctest.Wait()
		go deliver(body)
		synctest.Wait()
		if store.working != 1 {
			t.Fatalf("%d bodies are worked on", store.working)
		}
		store.gate <- struct{}{}
		synctest.Wait()
		if err := <-ended; err != nil || store.working != 1 {
			t.Fatalf("the second body does not follow the first: %v", err)
		}
		go deliver(bytes.ReplaceAll(body, []byte("z"), []byte("zz"))) // needs more than the budget
		if err := <-ended; !fault.Is(err, fault.ServiceUnavailable) || fault.From(err).RetryAfter == 0 {
			t.Fatalf("a body that waited for a minute: %v", err)
		}
		store.gate <- struct{}{}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		go deliver(bytes.ReplaceAll(body, []byte("z"), []byte("zz")))
		store.gate <- struct{}{}
		if err := <-ended; err != nil {
			t.Fatalf("alone: %v", err)
		}
	})
}
