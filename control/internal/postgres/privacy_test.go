package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/control/internal/ingest"
	"storefront.internal/control/internal/jobs"
	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/postgres"
	"storefront.internal/control/internal/privacy"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/stats"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/testkit"
)

// office executes the privacy requests of a shop.
type office struct {
	*market
	pool    *pgxpool.Pool
	jobs    *jobs.Inserter
	store   *postgres.Privacy
	service *privacy.Service
	log     *strings.Builder
	fetch   int64
}

func newOffice(t *testing.T) *office {
	o := &office{market: newMarket(t), log: &strings.Builder{}}
	registry, err := provider.NewRegistry(o.platform)
	if err != nil {
		t.Fatal(err)
	}
	o.pool = testkit.Pool(t, testkit.PostgresAs(t, o.url, "storefront_control"))
	if o.jobs, err = jobs.NewInserter(o.pool, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	o.store = postgres.NewPrivacy(o.pool)
	o.service = privacy.New(o.store, registry, slog.New(slog.NewTextHandler(o.log, nil)))
	return o
}

// orderOf is an order as a provider returns it.
func orderOf(id, buyer string, version int) provider.Fetched {
	price := catalog.Money{Amount: "1.00", Currency: "ARS"}
	return provider.Fetched{
		Entity: catalog.Order, ExternalID: id,
		Raw: fmt.Appendf(nil, `{"id":%s,"version":%d,"contact":{"mail":"%s@X.example"}}`, id, version,
			strings.ToUpper(buyer)),
		Document: &catalog.OrderDocument{
			Status: "open", Currency: "ARS", Total: price, PlacedAt: time.Now(),
			Lines: []catalog.OrderLine{{ItemExternalID: "1", Quantity: 1, UnitPrice: price}},
			Buyer: json.RawMessage(`{"email":"` + buyer + `@x.example","id":"7` + buyer + `"}`),
		},
	}
}

// fetched applies a later fetch and returns its outcomes.
func (o *office) fetched(orders ...provider.Fetched) (statuses []observation.Status,
	ids []ident.ObservationID) {
	o.t.Helper()
	o.fetch++
	outcomes, err := o.catalog.Apply(o.t.Context(), ingest.NewBatch(o.from, time.Now(), orders, o.fetch))
	if err != nil {
		o.t.Fatal(err)
	}
	for _, out := range outcomes {
		statuses, ids = append(statuses, out.Status), append(ids, out.ObservationID)
	}
	return statuses, ids
}

// receive receives a webhook, executes the privacy request that it is, and returns its id.
func (o *office) receive(body string, args ...any) ident.WebhookEventID {
	o.t.Helper()
	id := o.arrive(body, args...)
	if err := o.service.Execute(o.t.Context(), id); err != nil {
		o.t.Fatal(err)
	}
	return id
}

// arrive receives a webhook and returns its id.
func (o *office) arrive(body string, args ...any) ident.WebhookEventID {
	o.t.Helper()
	if _, err := o.hooks.Receive(o.t.Context(), o.request(fmt.Sprintf(body, args...))); err != nil {
		o.t.Fatal(err)
	}
	return ident.WebhookEventID(scan[string](o.shop,
		`SELECT max(delivery_id COLLATE "C") FROM control.webhook_deliveries`))
}

func (o *office) holding(text string, want ...string) {
	o.t.Helper()
	if got := testkit.TablesContaining(o.t, o.super, text); !slices.Equal(got, want) {
		o.t.Errorf("%s is in %v, want %v", text, got, want)
	}
}

// served reports whether read_raw serves a snapshot; its digest must be that of the observation.
func (o *office) served(id ident.ObservationID) bool {
	o.t.Helper()
	raw, err := o.archive.Raw(o.t.Context(), id)
	if fault.Is(err, fault.NotFound) {
		return false
	}
	if want := scan[string](o.shop,
		`SELECT content_digest FROM control.observations WHERE observation_id = $1`, id); err != nil ||
		catalog.Digest(raw) != want {
		o.t.Errorf("%s: %v, another digest than %s", raw, err, want)
	}
	return true
}

func TestACustomerIsRedacted(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	malformed := orderOf("504", "anna", 1)
	malformed.Document, malformed.Malformed = nil, &provider.Malformed{Reason: "missing at /total"}
	_, ids := o.fetched(orderOf("501", "anna", 1), orderOf("502", "anna", 1),
		orderOf("503", "bert", 1), malformed)
	o.fetched(orderOf("501", "anna", 2))
	o.receive(`{"store":"123","event":"changed","entity":"order","id":"501","mail":"anna@x.example"}`)
	o.receive(`{"store":"123","event":"changed","entity":"order","id":"503","mail":"bert@x.example"}`)
	asked := o.receive(`{"store":"123","event":"data_request","orders":["501"],"customer":{"Email":"anna@x.example"}}`)
	before := scan[int](o.shop, `SELECT count(*) FROM control.observations`)

	o.receive(`{"store":"123","event":"redact_customer","orders":["501","999","\u0000"],"customer":{"ID":"7anna","Email":"Anna@X.example","Phone":"1"}}`)

	for _, gone := range []string{"anna@x.example", "ANNA@X.example", "Anna@X.example", "7anna"} {
		o.holding(gone)
	}
	if n := scan[int](o.shop,
		`SELECT count(*) FROM control.observations WHERE redacted_at IS NOT NULL`); n != 4 ||
		before != scan[int](o.shop, `SELECT count(*) FROM control.observations`) {
		t.Errorf("%d observations are redacted", n)
	}
	if o.served(ids[0]) || o.served(ids[1]) || !o.served(ids[2]) {
		t.Error("snapshots of redacted orders are served, or others are not")
	}
	var doc catalog.OrderDocument
	text := scan[[]byte](o.shop, `SELECT document FROM control.observations WHERE observation_id = $1`,
		ids[1])
	if err := json.Unmarshal(text, &doc); err != nil || doc.Buyer != nil || len(doc.Lines) != 1 ||
		doc.Lines[0].ItemID == "" || doc.ExternalID != "502" {
		t.Errorf("the document is %s", text)
	}
	if n := scan[int](o.shop,
		`SELECT count(*) FROM relay.erasures WHERE subject = 'order' AND subject_id IN ('501', '502', '504', '999')`); n != 4 {
		t.Errorf("the relay is asked for the buyers of %d orders", n)
	}
	if log := o.log.String(); strings.Contains(strings.ToLower(log), "anna") ||
		!strings.Contains(log, string(asked)) {
		t.Errorf("logged: %s", log)
	}
	if len(testkit.TablesContaining(t, o.super, "bert@x.example")) == 0 {
		t.Error("another buyer is gone")
	}
	o.staysRedacted(malformed)
	o.endsDataRequest(asked)
}

// staysRedacted checks that nothing later of a redacted order is stored.
func (o *office) staysRedacted(malformed provider.Fetched) {
	o.t.Helper()
	statuses, _ := o.fetched(orderOf("501", "anna", 3), malformed, orderOf("505", "anna", 1),
		provider.Fetched{Entity: catalog.Order, ExternalID: "502", Gone: true})
	if want := []observation.Status{"duplicate", "duplicate", "accepted",
		"duplicate"}; !slices.Equal(statuses, want) {
		o.t.Errorf("fetched later: %v, want %v", statuses, want)
	}
	jobs := scan[int](o.shop, `SELECT count(*) FROM control.river_job`)
	o.receive(`{"store":"123","event":"changed","entity":"order","id":"501","mail":"again@x.example"}`)
	o.holding("again@x.example")
	if n := scan[int](o.shop, `SELECT count(*) FROM control.river_job`); n != jobs {
		o.t.Error("a redacted order is fetched")
	}
	if n := scan[int](o.shop,
		`SELECT count(*) FROM control.observations WHERE external_id IN ('501', '504')`); n != 3 {
		o.t.Errorf("%d observations of redacted orders", n)
	}
}

func figuresOf(o *office) (stats.Figures, error) {
	return postgres.New(o.pool, nil).Figures(o.t.Context(), anHour())
}

// endsDataRequest checks that a request stays open until an operator completes it.
func (o *office) endsDataRequest(id ident.WebhookEventID) {
	o.t.Helper()
	f, err := figuresOf(o)
	if err != nil || f.Privacy["data_request"] != 1 || f.Privacy["redact_customer"] != 0 ||
		f.OldestPrivacy <= 0 {
		o.t.Errorf("figures: %+v, %v", f, err)
	}
	if open, err := o.store.ListOpen(o.t.Context()); err != nil || len(open) != 1 || open[0].ID != id ||
		!slices.Equal(open[0].Orders, []string{"501"}) {
		o.t.Errorf("open: %+v, %v", open, err)
	}
	for _, want := range []bool{true, false} {
		if ended, err := o.store.CompleteDataRequest(o.t.Context(), id); err != nil || ended != want {
			o.t.Errorf("ended: %v, %v", ended, err)
		}
	}
}

func TestAStoreIsRedacted(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	var all []provider.Fetched
	for i := range 230 {
		all = append(all, orderOf(fmt.Sprint(1000+i), "anna", i))
	}
	o.fetched(all...)
	o.receive(`{"store":"123","event":"data_request","customer":{"Email":"anna@x.example"}}`)
	o.receive(`{"store":"123","event":"changed","id":"1","mail":"anna@x.example"}`)
	id := o.receive(`{"store":"123","event":"redact_store"}`)
	o.holding("anna@x.example")
	o.holding("ANNA@X.example")
	if n := scan[int](o.shop,
		`SELECT redacted FROM control.privacy_requests WHERE request_id = $1 AND completed_at IS NOT NULL`,
		id); n != 230 {
		t.Errorf("%d observations were redacted", n)
	}
	if n := scan[int](o.shop,
		`SELECT count(*) FROM relay.erasures WHERE subject = 'connection' AND connection_id = $1`,
		o.from.ConnectionID); n != 1 {
		t.Errorf("the relay is asked %d times", n)
	}
	if n := scan[int](o.shop, `SELECT count(*) FROM relay.erasures`); n != 1 {
		t.Errorf("%d erasures, want one for the connection", n)
	}
}

// dying is a store that fails after its n-th change, which is made.
type dying struct {
	*postgres.Privacy
	left int
}

var errDied = errors.New("died")

func (d *dying) dies(err error) error {
	if d.left--; d.left == 0 && err == nil {
		return errDied
	}
	return err
}

func (d *dying) RedactOrders(ctx context.Context, r *privacy.Request, orders []string) error {
	return d.dies(d.Privacy.RedactOrders(ctx, r, orders))
}

func (d *dying) RemoveWebhookBodies(ctx context.Context, r *privacy.Request, m *privacy.Matcher,
	from ident.WebhookEventID, limit int) (ident.WebhookEventID, error) {
	next, err := d.Privacy.RemoveWebhookBodies(ctx, r, m, from, limit)
	return next, d.dies(err)
}

func (d *dying) Complete(ctx context.Context, r *privacy.Request) error {
	return d.dies(d.Privacy.Complete(ctx, r))
}

// A redaction that dies after any of its changes begins again and ends as if it had not died. It also finds
// what only an order's number leads to, although the order has no buyer any more.
func TestARedactionBeginsAnew(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	registry, err := provider.NewRegistry(o.platform)
	if err != nil {
		t.Fatal(err)
	}
	died := 0
	for n := 1; n == died+1; n++ {
		who, order := fmt.Sprint("buyer", n), 1000*n
		o.fetched(orderOf(fmt.Sprint(order), who, 1), orderOf(fmt.Sprint(order+1), who, 1))
		for i := range 2 {
			o.receive(`{"store":"123","event":"changed","entity":"order","id":"%d","street":"of %s %d"}`,
				order+i, who, i)
		}
		id := o.arrive(`{"store":"123","event":"redact_customer","orders":["%d"],"customer":{"Email":"%s@x.example"}}`, order, who)
		err := privacy.New(&dying{o.store, n}, registry, slog.New(slog.DiscardHandler)).Execute(t.Context(),
			id)
		if errors.Is(err, errDied) {
			died++
		} else if err != nil {
			t.Fatal(err)
		}
		if err := o.service.Execute(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		for _, gone := range []string{who + "@x.example", strings.ToUpper(who), "of " + who} {
			o.holding(gone)
		}
	}
	if died < 5 {
		t.Errorf("a redaction makes %d changes", died)
	}
}
