package provider

import (
	"unicode/utf8"

	"storefront.internal/shared/catalog"
)

// SetDocument gives what was fetched its document when the document passes every catalog rule that a custom
// connector has to pass; else Malformed says which rule it breaks.
func (f *Fetched) SetDocument(doc catalog.Document) {
	if f.ExternalID == "" || utf8.RuneCountInString(f.ExternalID) > catalog.MaxExternalID {
		f.Malformed = &Malformed{Reason: string(catalog.InvalidExternalID)}
		return
	}
	// The rules are checked on the bytes that would be stored. The ids stand in for those that the caller
	// sets.
	text, ok := catalog.CompleteWithin(doc, catalog.Identity{
		ConnectionID: "con_checked", StoreID: "str_checked", ExternalID: f.ExternalID, Revision: 1,
	})
	if !ok {
		f.Malformed = &Malformed{Reason: string(catalog.TooLarge)}
		return
	}
	read, violation := catalog.ReadDocument(f.Entity, text)
	if violation != nil {
		f.Malformed = &Malformed{Reason: violation.String()}
		return
	}
	if order, ok := read.(*catalog.OrderDocument); ok {
		doc = order // its buyer is in canonical form now
	}
	f.Document = doc
}

// Requested checks that what was fetched is the requested entity. It returns the error of Fetch.
func (f Fetched) Requested(externalID string) (Fetched, error) {
	if f.ExternalID != externalID && f.Malformed == nil {
		f.Document, f.Malformed = nil, &Malformed{Reason: "another entity at /id"}
	}
	f.ExternalID = externalID
	if f.Malformed != nil {
		return f, f.Malformed
	}
	return f, nil
}
