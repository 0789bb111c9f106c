package ingest

import (
	"bytes"
	"context"
	"errors"
	"time"

	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

// NewBatch returns the batch of fetched entities. All of them were fetched with the same fetchSeq.
func NewBatch(from observation.Source, at time.Time, fetched []provider.Fetched,
	fetchSeq int64) *observation.Batch {
	b := &observation.Batch{Source: from, At: at, Elements: make([]observation.Element, 0, len(fetched))}
	for i := range fetched {
		b.Elements = append(b.Elements, newElement(&fetched[i], at, fetchSeq))
	}
	return b
}

// newElement returns the element of a fetched entity. Its digest covers the bytes that read_raw serves: the
// provider's own without the white space around them, none for a deleted entity. An entity that is fetched
// alone may end with a newline, which it does not have in a page.
func newElement(f *provider.Fetched, at time.Time, fetchSeq int64) observation.Element {
	e := observation.Element{
		Observation: catalog.Observation{
			Entity: f.Entity, ExternalID: f.ExternalID, Operation: catalog.Upsert,
			SourceUpdatedAt: f.SourceUpdatedAt,
		},
		Content: f.Document,
		ID:      ident.ObservationID(ident.RandomAt(ident.Observation, at)),
		Raw:     bytes.TrimSpace(f.Raw), FetchSeq: fetchSeq,
	}
	if e.Raw == nil {
		e.Raw = []byte{}
	}
	switch {
	case f.Malformed != nil || !f.Gone && f.Document == nil:
		e.Revision, e.Content = 1, nil // no revision is used up
		e.ExternalID = pg.SafeText(f.ExternalID, catalog.MaxExternalID)
		e.Quarantined = &catalog.Violation{Rule: catalog.Missing}
		if f.Malformed != nil {
			e.Quarantined = &catalog.Violation{Rule: catalog.Rule(f.Malformed.Reason)}
		}
		return e
	case f.Gone:
		e.Operation, e.Content, e.Raw = catalog.Delete, nil, []byte{}
	}
	e.Digest = catalog.Digest(e.Raw)
	return e
}

// FetchOne fetches one entity from a provider. "Not found" and a malformed answer are results, not errors.
func FetchOne(ctx context.Context, of shop.Opened, key observation.Key) (provider.Fetched, error) {
	f, err := of.Adapter.Fetch(ctx, of.Store, key.Entity, key.ExternalID)
	var malformed *provider.Malformed
	switch {
	case errors.Is(err, provider.ErrNotFound):
		f.Gone, err = true, nil
	case errors.As(err, &malformed) && len(f.Raw) > 0:
		f.Malformed, err = malformed, nil
	}
	f.Entity, f.ExternalID = key.Entity, key.ExternalID
	return f, err
}
