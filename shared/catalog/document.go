package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"storefront.internal/shared/ident"
)

// Document is the document of an entity: *CatalogAggregate, *TaxonomyNodeDocument or *OrderDocument.
type Document interface {
	complete(id Identity)
	write(w *writer)
}

// Identity is what completes a document.
type Identity struct {
	ConnectionID ident.ConnectionID
	StoreID      ident.StoreID
	ExternalID   string // of the observation; an external id in the document is ignored
	Revision     int64  // at least 1; the refresh_revision of a product
}

// ReadDocument parses and validates a document. Our ids and refresh_revision are ignored, unknown members
// dropped. The pointer of the violation starts at the document.
func ReadDocument(e Entity, text []byte) (Document, *Violation) {
	return new(Reader).document(e, text, nil)
}

// document is ReadDocument. With a completion, what it returns lacks the variants.
func (d *Reader) document(e Entity, text []byte, c *completion) (Document, *Violation) {
	if len(text) > MaxDocument {
		return nil, &Violation{Rule: TooLarge}
	}
	t, violation := parse(&d.dec, text, d.nodes)
	d.nodes = t.nodes
	if violation == nil {
		r := &reader{tree: t, free: d.free}
		read := r.entity(e, c)
		d.free = r.free
		if violation = r.violation; violation == nil {
			return read, nil
		}
	}
	if e == Order {
		violation.withoutBuyerData()
	}
	return nil, violation
}

func (r *reader) entity(e Entity, c *completion) Document {
	switch root := r.object(0); e {
	case Product:
		return readProduct(r, root, c)
	case Category:
		return readCategory(r, root)
	default:
		return readOrder(r, root)
	}
}

// Complete adds our ids to a document that was read, or built by an adapter, and returns its canonical bytes,
// which are stored, digested and served unchanged.
func Complete(d Document, id Identity) []byte {
	d.complete(id)
	w := newWriter()
	d.write(w)
	return w.b
}

// CompleteWithin is Complete for a document that was built of untrusted texts. It reports false for a
// document of more than MaxDocument bytes, and stops writing its texts there: a text that many variants share
// is small in memory and may still be huge when it is written for each.
func CompleteWithin(d Document, id Identity) ([]byte, bool) {
	d.complete(id)
	w := newWriter()
	w.most = MaxDocument
	d.write(w)
	return w.b, !w.cut && len(w.b) <= MaxDocument
}

// Decode returns the document of canonical bytes, with its ids. It does not validate: the bytes were written
// by Complete.
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

// Digest returns the content_digest of canonical bytes. That of a delete, which has no document, is
// Digest(nil).
func Digest(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:])
}
