package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"storefront.internal/shared/ident"
)

// Document is what an entity looks like: *CatalogAggregate, *TaxonomyNodeDocument or *OrderDocument.
type Document interface {
	complete(id Identity)
	write(w *writer)
}

// Identity is what a document does not say of itself.
type Identity struct {
	ConnectionID ident.ConnectionID
	StoreID      ident.StoreID
	ExternalID   string // of the observation; one inside the document does not count
	Revision     int64  // at least 1; the refresh_revision of a product
}

// ReadDocument reads the bytes of a document strictly and by every rule of the contract (section 3 "Custom documents").
// Our ids and refresh_revision are ignored, unknown members dropped. The flaw's pointer starts at the document.
func ReadDocument(e Entity, text []byte) (Document, *Flaw) {
	if len(text) > MaxDocument {
		return nil, &Flaw{Rule: TooLarge}
	}
	t, flaw := parse(text)
	if flaw == nil {
		r := &reader{tree: t}
		var d Document
		switch root := r.object(0); e {
		case Product:
			d = readProduct(r, root)
		case Category:
			d = readCategory(r, root)
		default:
			d = readOrder(r, root)
		}
		if r.flaw == nil {
			return d, nil
		}
		flaw = r.flaw
	}
	if e == Order {
		flaw.withoutBuyerData()
	}
	return nil, flaw
}

// Complete gives a document that was read, or built by an adapter, our ids and returns its canonical bytes: those that
// are stored, digested and served as they are.
func Complete(d Document, id Identity) []byte {
	d.complete(id)
	w := newWriter()
	d.write(w)
	return w.b
}

// Decode returns the document in canonical bytes, ids included. It is for bytes that Complete wrote and trusts them.
func Decode(e Entity, canonical []byte) (Document, error) {
	var d Document
	switch e {
	case Product:
		d = new(CatalogAggregate)
	case Category:
		d = new(TaxonomyNodeDocument)
	default:
		d = new(OrderDocument)
	}
	if err := json.Unmarshal(canonical, d); err != nil {
		return nil, fmt.Errorf("decode a stored %s: %T", e, err) // the text may quote an order
	}
	return d, nil
}

// Digest returns the content_digest of the bytes that operation 10 serves as document; of a delete, which has none, it
// is Digest(nil).
func Digest(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:])
}
