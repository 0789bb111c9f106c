package webhook

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"storefront.internal/control/internal/appsecret"
	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/settings"
)

// signed is an adapter for which "right" is a right signature; the topic is the entity.
type signed struct{ provider.Adapter }

func (signed) Name() string { return "signed" }

func (signed) IsPing([]byte) bool { return false }

func (signed) VerifySignature(_ []settings.Secret, signature string, _ []byte) bool {
	return signature == "right"
}

func (signed) ParseWebhook(topic string, _ []byte) (provider.WebhookEvent, error) {
	return provider.WebhookEvent{Kind: provider.Changed, Entity: catalog.Entity(topic), ExternalID: "1"}, nil
}

// shelf keeps what was saved.
type shelf struct{ saved []*Event }

func (s *shelf) Endpoint(_ context.Context, id string) (Endpoint, error) {
	return Endpoint{ID: ident.EndpointID(id), App: appsecret.App{Provider: "signed", ID: "app"}}, nil
}

func (s *shelf) SaveEvent(_ context.Context, e *Event) error {
	s.saved = append(s.saved, e)
	return nil
}

func TestQuotaOfAnEndpoint(t *testing.T) {
	t.Parallel()
	registry, err := provider.NewRegistry(signed{})
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := appsecret.Parse("signed/app:0123456789abcdefghijklmn")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 1, 12, 0, 20, 0, time.UTC)
	store, metrics := &shelf{}, NewMetrics(prometheus.NewRegistry())
	s := New(store, registry, secrets, metrics, func() time.Time { return now },
		Quota{Deliveries: 3, Bytes: maxArchived + 100})
	f := func(name, endpoint, topic, signature string, size int, want fault.Code, kept int) {
		t.Helper()
		before := len(store.saved)
		_, err := s.Receive(t.Context(), &Request{Caller: "signed", Provider: "signed", EndpointID: endpoint,
			Signature: signature, Topic: topic, Body: make([]byte, size)})
		if want != "" {
			if !fault.Is(err, want) || len(store.saved) != before {
				t.Errorf("%s: %v", name, err)
			}
			if retry := fault.From(err).RetryAfter; want == fault.RateLimited && retry != 40*time.Second {
				t.Errorf("%s: try again after %v", name, retry)
			}
			return
		}
		if err != nil || len(store.saved) != before+1 || len(store.saved[before].Body) != kept {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range 5 {
		f("strangers", "whe_1", "product", "wrong", 10, fault.Unauthorized, 0)
	}
	f("first", "whe_1", "product", "right", 10, "", 10)
	f("second", "whe_1", "order", "right", 20, "", 20)
	f("third", "whe_1", "product", "right", 30, "", 30)
	f("one more", "whe_1", "product", "right", 1, fault.RateLimited, 0)
	f("another endpoint", "whe_2", "product", "right", maxArchived, "", maxArchived)
	f("too many bytes", "whe_2", "product", "right", 101, fault.RateLimited, 0)
	f("fewer bytes", "whe_2", "product", "right", 100, "", 100)
	if n := testutil.ToFloat64(metrics.limited); n != 2 {
		t.Errorf("%v are counted", n)
	}
	now = now.Add(time.Minute)
	f("the next minute", "whe_1", "product", "right", maxArchived+1, "", 0)
	now = now.Add(time.Minute)
	f("an order", "whe_1", "order", "right", maxArchived+1, "", maxArchived+1)
}
