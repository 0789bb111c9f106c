package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"storefront.internal/control/internal/postgres"
	"storefront.internal/control/internal/privacy"
	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/ident"
)

// tired is a store whose every attempt is cut off after a few pages.
type tired struct {
	*postgres.Privacy
	pages int // left of this attempt
}

var errCutOff = errors.New("cut off")

func (s *tired) page() error {
	if s.pages--; s.pages < 0 {
		return errCutOff
	}
	return nil
}

func (s *tired) FindOrders(ctx context.Context, c ident.ConnectionID, m *privacy.Matcher, after string,
	limit int) (privacy.OrderPage, error) {
	if err := s.page(); err != nil {
		return privacy.OrderPage{}, err
	}
	return s.Privacy.FindOrders(ctx, c, m, after, limit)
}

func (s *tired) RemoveWebhookBodies(ctx context.Context, r *privacy.Request, m *privacy.Matcher,
	after ident.WebhookEventID, limit int) (ident.WebhookEventID, error) {
	if err := s.page(); err != nil {
		return "", err
	}
	return s.Privacy.RemoveWebhookBodies(ctx, r, m, after, limit)
}

func TestARequestOfALargeShopKeepsItsProgress(t *testing.T) {
	t.Parallel()
	f := func(body, left string) {
		t.Helper()
		o := newOffice(t)
		for i := range 5 {
			var orders []provider.Fetched
			for j := range 100 {
				buyer := "other"
				if j == 50 {
					buyer = "ana"
				}
				orders = append(orders, orderOf(fmt.Sprint(1000+100*i+j), buyer, 1))
			}
			o.fetched(orders...)
		}
		o.exec(`INSERT INTO control.webhook_deliveries (delivery_id, minted_at, connection_id, endpoint_id, raw)
			SELECT 'whd_-' || lpad(n::text, 5, '0'), now(), $1, 'whe_1', convert_to('{"mail":"ana@x.example"}', 'UTF8')
			FROM generate_series(1, 2100) AS n`, o.from.ConnectionID)
		if n := scan[int](o.shop, left); n == 0 {
			t.Fatal("nothing is to be removed")
		}
		id := o.arrive("%s", body)
		registry, err := provider.NewRegistry(o.platform)
		if err != nil {
			t.Fatal(err)
		}
		store := &tired{Privacy: o.store}
		service := privacy.New(store, registry, slog.New(slog.DiscardHandler))
		attempts := 1
		for ; attempts <= 20; attempts++ {
			store.pages = 2
			if err = service.Execute(t.Context(), id); !errors.Is(err, errCutOff) {
				break
			}
		}
		if err != nil || attempts < 4 {
			t.Errorf("%s: %v after %d attempts", body, err, attempts)
		}
		if n := scan[int](o.shop, left); n != 0 {
			t.Errorf("%s: %d are left", body, n)
		}
		if n := scan[int](o.shop, `SELECT count(*) FROM control.privacy_requests
			WHERE completed_at IS NOT NULL AND progress IS NULL`); n != 1 {
			t.Errorf("%s: the request is not completed", body)
		}
	}
	f(`{"store":"123","event":"redact_customer","customer":{"Email":"ana@x.example"}}`,
		`SELECT count(*) FROM (SELECT raw FROM control.webhook_deliveries UNION ALL SELECT raw FROM control.observations) AS a
			WHERE position('ana@x.example' IN lower(encode(raw, 'escape'))) > 0`)
	f(`{"store":"123","event":"redact_store"}`,
		`SELECT count(*) FROM (SELECT raw FROM control.webhook_deliveries UNION ALL SELECT raw FROM control.observations) AS a
			WHERE octet_length(raw) > 0`)
}
