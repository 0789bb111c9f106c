package recommend

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// expandWait is how long an answer waits for the documents of its items.
const expandWait = 20 * time.Millisecond

// Documents holds the items as getCatalogItem answers them.
type Documents interface {
	// Bodies returns the body of each item; nil for one that is not at hand before the context ends.
	Bodies(ctx context.Context, c ident.ConnectionID, items []ident.ItemID) [][]byte
}

// Card is what a storefront needs to show an item without another request. Texts, media and amounts have the
// form that they have in the catalog item.
type Card struct {
	VariantExternalID string `json:"-"` // of the variant that the Decision names; "" without one

	ExternalID       string         `json:"external_id"`
	Title            jsontext.Value `json:"title"`
	URL              jsontext.Value `json:"url,omitempty"`
	Image            jsontext.Value `json:"image,omitempty"`
	Price            jsontext.Value `json:"price,omitempty"`
	PromotionalPrice jsontext.Value `json:"promotional_price,omitempty"`
	Availability     []cardVariant  `json:"availability"`
	RefreshRevision  int64          `json:"refresh_revision"`
}

type cardVariant struct {
	ExternalID string `json:"variant_external_id"`
	Sellable   string `json:"sellable,omitempty"`
	Quantity   *int64 `json:"quantity,omitempty"`
}

// document is the part of a catalog item that a card shows.
type document struct {
	Item struct {
		ExternalID   string         `json:"external_id"`
		Title        jsontext.Value `json:"title"`
		URLs         jsontext.Value `json:"urls"`
		PrimaryMedia jsontext.Value `json:"primary_media"`
	} `json:"item"`
	Variants []struct {
		VariantID        ident.VariantID `json:"variant_id"`
		ExternalID       string          `json:"external_id"`
		Price            jsontext.Value  `json:"price"`
		PromotionalPrice jsontext.Value  `json:"promotional_price"`
	} `json:"variants"`
	Availability []struct {
		VariantID ident.VariantID `json:"variant_id"`
		Sellable  string          `json:"sellable"`
		Quantity  *int64          `json:"quantity"`
	} `json:"availability"`
	RefreshRevision int64 `json:"refresh_revision"`
}

// newCard makes a card of a catalog item. Its price is that of the variant, or of the first variant with a
// price when the Decision names none.
func newCard(body []byte, variant ident.VariantID) *Card {
	var d document
	if json.Unmarshal(body, &d) != nil {
		return nil
	}
	card := &Card{ExternalID: d.Item.ExternalID, Title: d.Item.Title, URL: d.Item.URLs,
		Image: d.Item.PrimaryMedia, RefreshRevision: d.RefreshRevision,
		Availability: make([]cardVariant, 0, len(d.Availability))}
	externalIDs := make(map[ident.VariantID]string, len(d.Variants))
	for i := range d.Variants {
		v := &d.Variants[i]
		externalIDs[v.VariantID] = v.ExternalID
		if v.VariantID == variant || variant == "" && card.Price == nil {
			card.Price, card.PromotionalPrice = v.Price, v.PromotionalPrice
		}
	}
	card.VariantExternalID = externalIDs[variant]
	for _, a := range d.Availability {
		card.Availability = append(card.Availability,
			cardVariant{externalIDs[a.VariantID], a.Sellable, a.Quantity})
	}
	return card
}

// cards returns the card of each item; nil for those that are not at hand.
func (s *Service) cards(ctx context.Context, c ident.ConnectionID, items []signal.DecisionItem) []*Card {
	cards := make([]*Card, len(items))
	if s.cfg.Documents == nil || len(items) == 0 {
		return cards
	}
	ctx, cancel := context.WithTimeout(ctx, expandWait)
	defer cancel()
	ids := make([]ident.ItemID, len(items))
	for i := range items {
		ids[i] = items[i].ItemID
	}
	for i, body := range s.cfg.Documents.Bodies(ctx, c, ids) {
		if body != nil {
			cards[i] = newCard(body, items[i].VariantID)
		}
		if cards[i] == nil {
			s.cfg.Metrics.unexpanded.Inc()
		}
	}
	return cards
}

// appendJSON appends the members that a card adds to an item of the answer.
func (c *Card) appendJSON(dst []byte) []byte {
	if c.VariantExternalID != "" {
		dst = append(dst, `,"variant_external_id":`...)
		dst, _ = jsontext.AppendQuote(dst, c.VariantExternalID) // stored texts are valid UTF-8
	}
	item, err := json.Marshal(c)
	if err != nil {
		return dst
	}
	return append(append(dst, `,"item":`...), item...)
}
