package postgres_test

import (
	"fmt"
	"slices"
	"testing"

	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/testkit"
)

// orderWith is an order whose bytes are those of orderOf with another e-mail address.
func orderWith(id, email string) provider.Fetched {
	f := orderOf(id, "nobody"+id, 1)
	f.Raw = fmt.Appendf(nil, `{"id":%s,"contact":{"mail":"%s"}}`, id, email)
	return f
}

// redacted returns the external ids of redacted orders.
func (o *office) redacted() []string {
	o.t.Helper()
	return scan[[]string](o.shop, `
		SELECT coalesce(array_agg(external_id ORDER BY external_id), '{}')
		FROM control.entities WHERE redacted_at IS NOT NULL`)
}

func TestARedactionSparesStrangers(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.fetched(orderWith("1", "ana@gmail.com"), orderWith("2", "mariana@gmail.com"),
		orderWith("3", "juli.ana@gmail.com"), orderWith("4", "ana@gmail.com.ar"),
		orderWith("5", `Bego\u00f1a@pe\u00f1a.example`), orderWith("6", "BEGOÑA@peña.example"),
		orderWith("7", "begona@pena.example"), orderWith("8", "ana@gmail.co"))
	o.receive(`{"store":"123","event":"changed","entity":"product","id":"100","note":"by mariana@gmail.com"}`)
	o.receive(`{"store":"123","event":"changed","entity":"product","id":"200","note":"by\nAna@gmail.com"}`)
	for _, c := range []struct {
		email string
		want  []string
	}{
		{"ana@gmail.com", []string{"1"}},
		{"ana@gmail.co", []string{"1", "8"}},
		{"begoña@peña.example", []string{"1", "5", "6", "8"}},
	} {
		o.receive(`{"store":"123","event":"redact_customer","customer":{"Email":%q}}`, c.email)
		if got := o.redacted(); !slices.Equal(got, c.want) {
			t.Errorf("%s: redacted are %v, want %v", c.email, got, c.want)
		}
	}
	if len(testkit.TablesContaining(t, o.super, "by mariana@gmail.com")) == 0 {
		t.Error("a webhook about another customer is gone")
	}
	o.holding("Ana@gmail.com")
}

// crowd delivers orders of one customer, and one order that the request names.
func (o *office) crowd(n int) ident.WebhookEventID {
	o.t.Helper()
	all := []provider.Fetched{orderOf("1", "carl", 1)}
	for i := range n {
		all = append(all, orderOf(fmt.Sprint(1000+i), "anna", 1))
	}
	o.fetched(all...)
	o.receive(`{"store":"123","event":"changed","entity":"product","id":"100","mail":"anna@x.example"}`)
	return o.receive(
		`{"store":"123","event":"redact_customer","orders":["1"],"customer":{"Email":"anna@x.example"}}`)
}

func TestManyMatchesWaitForAnOperator(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.crowd(51)
	open, err := o.store.ListOpen(t.Context())
	if got := o.redacted(); !slices.Equal(got, []string{"1"}) || err != nil || len(open) != 1 ||
		open[0].Matches != 51 || open[0].Approved {
		t.Fatalf("redacted: %v, open: %+v, %v", got, open, err)
	}
	if err := o.service.Execute(t.Context(), id); err != nil || len(o.redacted()) != 1 {
		t.Fatalf("executed again: %v, redacted: %v", err, o.redacted())
	}
	if f, err := figuresOf(o); err != nil || f.Privacy["redact_customer"] != 1 {
		t.Errorf("figures: %+v, %v", f, err)
	}
	for _, want := range []bool{true, false} {
		if approved, err := o.store.Approve(t.Context(), o.jobs, id); err != nil || approved != want {
			t.Fatalf("approved: %v, %v", approved, err)
		}
	}
	if n := scan[int](o.shop, `SELECT count(*) FROM control.river_job
		WHERE kind = 'privacy_request' AND args ->> 'privacy_request_id' = $1`, id); n != 2 {
		t.Errorf("%d jobs", n)
	}
	if refused, err := o.store.Refuse(t.Context(), id); err != nil || refused {
		t.Errorf("an approved one is refused: %v", err)
	}
	if err := o.service.Execute(t.Context(), id); err != nil || len(o.redacted()) != 52 {
		t.Errorf("approved: %v, %d are redacted", err, len(o.redacted()))
	}
	o.holding("anna@x.example")
	if open, err := o.store.ListOpen(t.Context()); err != nil || len(open) != 0 {
		t.Errorf("open: %+v, %v", open, err)
	}
}

func TestARefusedRedactionKeepsTheMatches(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.crowd(51)
	for _, want := range []bool{true, false} {
		if refused, err := o.store.Refuse(t.Context(), id); err != nil || refused != want {
			t.Fatalf("refused: %v, %v", refused, err)
		}
	}
	if err := o.service.Execute(t.Context(), id); err != nil || len(o.redacted()) != 1 {
		t.Errorf("executed: %v, redacted: %v", err, o.redacted())
	}
	const length = `SELECT octet_length(raw) FROM control.webhook_deliveries WHERE delivery_id = $1`
	if n := scan[int](o.shop, length, id); n != 0 {
		t.Error("the request's body is kept")
	}
}

// A share of a large shop's orders is redacted without an operator.
func TestAShareOfOrdersIsRedacted(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	var others []provider.Fetched
	for i := range 1040 {
		others = append(others, orderOf(fmt.Sprint(5000+i), "bert", 1))
	}
	o.fetched(others...)
	o.crowd(54)
	if got := len(o.redacted()); got != 55 {
		t.Errorf("%d are redacted", got)
	}
}

func TestAPrivacyRequestNamesItsShop(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.fetched(orderOf("1", "anna", 1))
	for _, kind := range []provider.EventKind{provider.RedactShop, provider.RedactCustomer,
		provider.DataRequest} {
		o.receive(`{"event":%q,"orders":["1"],"customer":{"Email":"anna@x.example"}}`, kind)
		body := fmt.Sprintf(`{"store":"124","event":%q,"orders":["1"]}`, kind)
		if _, err := o.hooks.Receive(t.Context(), o.request(body)); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s of another shop: %v", kind, err)
		}
	}
	if n := scan[int](o.shop, `SELECT count(*) FROM control.privacy_requests`); n != 0 ||
		len(o.redacted()) > 0 {
		t.Errorf("%d requests, redacted: %v", n, o.redacted())
	}
}
