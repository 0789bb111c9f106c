package catalog

import (
	"encoding/json"
	"log/slog"
	"time"

	"storefront.internal/shared/ident"
)

// OrderLine is one line of an order.
type OrderLine struct {
	ItemID            ident.ItemID    `json:"item_id"`
	ItemExternalID    string          `json:"item_external_id"`
	VariantID         ident.VariantID `json:"variant_id,omitempty"`
	VariantExternalID string          `json:"variant_external_id,omitempty"`
	Quantity          int64           `json:"quantity"`
	UnitPrice         Money           `json:"unit_price"`
}

// OrderDocument is the document of entity order. It holds buyer data: it is never logged, cached, or part of
// a metric or an error, and prints as a placeholder.
type OrderDocument struct {
	OrderID       OrderID         `json:"order_id"`
	ExternalID    string          `json:"external_id"`
	Number        string          `json:"number,omitempty"`
	Status        string          `json:"status"`
	PaymentStatus string          `json:"payment_status,omitempty"`
	Currency      string          `json:"currency"`
	Total         Money           `json:"total"`
	Lines         []OrderLine     `json:"lines"`
	PlacedAt      time.Time       `json:"placed_at"`       // UTC, microseconds
	Buyer         json.RawMessage `json:"buyer,omitempty"` // an object of any shape in canonical form
}

// WithoutBuyer returns the canonical bytes of an order without its buyer.
func WithoutBuyer(canonical []byte, id Identity) ([]byte, error) {
	d, err := Decode(Order, canonical)
	if err != nil {
		return nil, err
	}
	if o, ok := d.(*OrderDocument); ok {
		o.Buyer = nil
	}
	return Complete(d, id), nil
}

const unprinted = "[order document]"

// String hides the document.
func (OrderDocument) String() string { return unprinted }

// GoString hides the document.
func (OrderDocument) GoString() string { return unprinted }

// LogValue hides the document.
func (OrderDocument) LogValue() slog.Value { return slog.StringValue(unprinted) }

func (d *OrderDocument) complete(id Identity) {
	d.OrderID = NewOrderID(id.ConnectionID, id.ExternalID)
	d.ExternalID = id.ExternalID
	for i := range d.Lines {
		l := &d.Lines[i]
		l.ItemID = NewItemID(id.ConnectionID, l.ItemExternalID)
		if l.VariantExternalID != "" {
			l.VariantID = NewVariantID(id.ConnectionID, l.ItemExternalID, l.VariantExternalID)
		}
	}
}

func (d *OrderDocument) write(w *writer) {
	w.open('{')
	w.textMember("order_id", string(d.OrderID))
	w.textMember("external_id", d.ExternalID)
	w.textMember("number", d.Number)
	w.textMember("status", d.Status)
	w.textMember("payment_status", d.PaymentStatus)
	w.textMember("currency", d.Currency)
	w.money("total", &d.Total)
	w.name("lines")
	w.open('[')
	for i := range d.Lines {
		d.Lines[i].write(w)
	}
	w.close(']')
	w.time("placed_at", d.PlacedAt)
	if len(d.Buyer) > 0 {
		w.name("buyer")
		w.raw(d.Buyer)
	}
	w.close('}')
}

func (l *OrderLine) write(w *writer) {
	w.open('{')
	w.textMember("item_id", string(l.ItemID))
	w.textMember("item_external_id", l.ItemExternalID)
	w.textMember("variant_id", string(l.VariantID))
	w.textMember("variant_external_id", l.VariantExternalID)
	w.integer("quantity", l.Quantity)
	w.money("unit_price", &l.UnitPrice)
	w.close('}')
}

func readOrder(r *reader, root int) *OrderDocument {
	d := &OrderDocument{
		Number:        r.number(r.get(root, "number")),
		Status:        r.nonEmpty(r.need(root, "status"), InvalidStatus),
		PaymentStatus: r.shortText(r.get(root, "payment_status"), InvalidStatus),
		Currency:      r.currency(r.need(root, "currency")),
		Total:         r.money(r.need(root, "total")),
		Lines:         []OrderLine{},
	}
	for n := range r.each(r.need(root, "lines"), maxLines) {
		if n = r.object(n); n == absent {
			break
		}
		d.Lines = append(d.Lines, OrderLine{
			ItemExternalID:    r.externalID(r.need(n, "item_external_id")),
			VariantExternalID: r.externalID(r.get(n, "variant_external_id")),
			Quantity:          r.integer(r.need(n, "quantity"), 0, maxInteger),
			UnitPrice:         r.money(r.need(n, "unit_price")),
		})
	}
	d.PlacedAt = r.time(r.need(root, "placed_at"))
	d.Buyer = r.freeForm(r.get(root, "buyer"), maxBuyer)
	return d
}
