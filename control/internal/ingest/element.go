package ingest

import (
	"context"
	"errors"
	"strings"
	"time"

	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// BatchOf makes the batch of what fetches brought. number is that of the fetch of each.
func BatchOf(from observation.Source, at time.Time, fetched []provider.Fetched, number int64) *observation.Batch {
	b := &observation.Batch{Source: from, At: at, Elements: make([]observation.Element, 0, len(fetched))}
	for i := range fetched {
		b.Elements = append(b.Elements, element(&fetched[i], at, number))
	}
	return b
}

// element is what a provider returned of an entity, as the compare-and-set takes it. The digest is that of the bytes that
// operation 11 serves: the provider's own, or none of an entity that is gone.
func element(f *provider.Fetched, at time.Time, number int64) observation.Element {
	e := observation.Element{
		Observation: catalog.Observation{
			Entity: f.Entity, ExternalID: f.ExternalID, Operation: catalog.Upsert, SourceUpdatedAt: f.SourceUpdatedAt, Content: f.Document,
		},
		ID: ident.ObservationID(ident.RandomAt(ident.Observation, at)), Sent: f.Raw, Fetch: number,
	}
	if e.Sent == nil {
		e.Sent = []byte{}
	}
	switch {
	case f.Malformed != nil || !f.Gone && f.Document == nil:
		e.Revision, e.Content = 1, nil // none is used up
		e.ExternalID = storable(f.ExternalID)
		e.Quarantined = &catalog.Flaw{Rule: catalog.Missing}
		if f.Malformed != nil {
			e.Quarantined = &catalog.Flaw{Rule: catalog.Rule(f.Malformed.Reason)}
		}
		return e
	case f.Gone:
		e.Operation, e.Content, e.Sent = catalog.Delete, nil, []byte{}
	}
	e.Digest = catalog.Digest(e.Sent)
	return e
}

// storable cuts an identifier that no rule has judged to one that a column takes.
func storable(id string) string {
	id = strings.ReplaceAll(strings.ToValidUTF8(id, ""), "\x00", "")
	if runes := []rune(id); len(runes) > catalog.MaxExternalID {
		id = string(runes[:catalog.MaxExternalID])
	}
	return id
}

// FetchOne asks a provider for one entity. What it answers is made that entity's, and an answer that is none by our rules
// a malformed one rather than a failure.
func FetchOne(ctx context.Context, of shop.Opened, key observation.Key) (provider.Fetched, error) {
	f, err := of.Adapter.Fetch(ctx, of.Store, key.Entity, key.ExternalID)
	var malformed *provider.Malformed
	switch {
	case errors.Is(err, provider.ErrGone):
		f.Gone, err = true, nil
	case errors.As(err, &malformed) && len(f.Raw) > 0:
		f.Malformed, err = malformed, nil
	}
	f.Entity, f.ExternalID = key.Entity, key.ExternalID
	return f, err
}
