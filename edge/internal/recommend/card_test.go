package recommend

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// documents holds bodies by item.
type documents map[ident.ItemID]string

func (d documents) Bodies(_ context.Context, _ ident.ConnectionID, items []ident.ItemID) [][]byte {
	bodies := make([][]byte, len(items))
	for i, id := range items {
		if body, ok := d[id]; ok {
			bodies[i] = []byte(body)
		}
	}
	return bodies
}

const shirt = `{"item":{"item_id":"itm_1","store_id":"str_1","connection_id":"con_1","external_id":"77",
	"title":{"es":"Camisa \"<1>\""},"status":"active","urls":{"es":"https://shop.example/77"},
	"primary_media":{"url":"https://img.example/77.webp"}},
	"variants":[{"variant_id":"var_1","item_id":"itm_1","external_id":"77-S"},
		{"variant_id":"var_2","item_id":"itm_1","external_id":"77-M","price":{"amount":"10.00","currency":"ARS"},
			"promotional_price":{"amount":"8.50","currency":"ARS"}},
		{"variant_id":"var_3","item_id":"itm_1","external_id":"77-L","price":{"amount":"12.00","currency":"ARS"}}],
	"availability":[{"variant_id":"var_2","sellable":"true","quantity":0},{"variant_id":"var_3"}],
	"refresh_revision":9}`

func TestExpandAddsWhatIsAtHand(t *testing.T) {
	t.Parallel()
	e := &engine{do: func(context.Context) (EngineResponse, error) {
		return EngineResponse{Items: []Item{{ItemID: "itm_1"}, {ItemID: "itm_gone"},
			{ItemID: "itm_1", VariantID: "var_3"}, {ItemID: "itm_bad"}}}, nil
	}}
	s, _, _ := newService(Config{Engine: e, Documents: documents{"itm_1": shirt, "itm_bad": "{"}})
	a, err := ask(t, s, `{"placement":"home","expand":["item"]}`)
	if err != nil {
		t.Fatal(err)
	}
	const common = `"external_id":"77","title":{"es":"Camisa \"<1>\""},"url":{"es":"https://shop.example/77"},` +
		`"image":{"url":"https://img.example/77.webp"},`
	const availability = `"availability":[{"variant_external_id":"77-M","sellable":"true","quantity":0},` +
		`{"variant_external_id":"77-L"}],"refresh_revision":9}`
	const want = `[{"position":0,"item_id":"itm_1","item":{` + common +
		`"price":{"amount":"10.00","currency":"ARS"},"promotional_price":{"amount":"8.50","currency":"ARS"},` +
		availability + `},{"position":1,"item_id":"itm_gone"},` +
		`{"position":2,"item_id":"itm_1","variant_id":"var_3","variant_external_id":"77-L","item":{` + common +
		`"price":{"amount":"12.00","currency":"ARS"},` + availability + `},{"position":3,"item_id":"itm_bad"}]`
	var got struct {
		Items json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(a.AppendJSON(nil), &got); err != nil || string(got.Items) != want {
		t.Errorf("%v\ngot  %s\nwant %s", err, got.Items, want)
	}
	plain, err := ask(t, s, `{"placement":"home","expand":[]}`)
	if err != nil || plain.Cards != nil {
		t.Errorf("%v: cards without being asked: %v", err, plain)
	}
}

func TestExpandKnowsOneName(t *testing.T) {
	t.Parallel()
	s, _, _ := newService(Config{})
	for _, value := range []string{`"item"`, `["item","price"]`, `[1]`,
		`["item","item","item","item","item","item","item","item","item"]`} {
		_, err := ask(t, s, `{"placement":"home","expand":`+value+`}`)
		if f := new(fault.Error); !errors.As(err, &f) || f.Code != fault.InvalidRequest {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func BenchmarkCards(b *testing.B) {
	s, _, _ := newService(Config{Documents: documents{"itm_1": shirt}})
	items := positions([]Item{{ItemID: "itm_1"}, {ItemID: "itm_1"}, {ItemID: "itm_1"}, {ItemID: "itm_1"},
		{ItemID: "itm_1"}, {ItemID: "itm_1"}, {ItemID: "itm_1"}, {ItemID: "itm_1"}}, MaxItems)
	for b.Loop() {
		s.cards(b.Context(), "con_1", items)
	}
}
