package provider

import (
	"unicode/utf8"

	"storefront.internal/shared/catalog"
)

// Judge gives what an adapter read its document, when the document passes every rule that the catalog has for what a
// custom connector delivers; else it says which one it breaks. So a document of a provider is never worth less than one
// of operation 4, and Complete cannot meet one that it does not know how to write.
func Judge(f *Fetched, doc catalog.Document) {
	if f.ExternalID == "" || utf8.RuneCountInString(f.ExternalID) > catalog.MaxExternalID {
		f.Malformed = &Malformed{Reason: string(catalog.InvalidExternalID)}
		return
	}
	// The bytes are judged as they would be stored. The connection is nobody's: the caller completes the document.
	text := catalog.Complete(doc, catalog.Identity{ConnectionID: "con_judged", StoreID: "str_judged", ExternalID: f.ExternalID, Revision: 1})
	read, flaw := catalog.ReadDocument(f.Entity, text)
	if flaw != nil {
		f.Malformed = &Malformed{Reason: flaw.String()}
		return
	}
	if order, ok := read.(*catalog.OrderDocument); ok {
		doc = order // its buyer is in canonical form now
	}
	f.Document = doc
}
