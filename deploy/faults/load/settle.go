package load

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"

	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/faults/recording"
)

// CorrectCatalogs delivers a valid document of each entity of the custom connections, as their connectors do
// when they have read their quarantine. What a provider answered wrongly is fetched again on request.
func (l *Load) CorrectCatalogs(ctx context.Context) error {
	errs := []error{together(l.Connections, func(i int) error {
		return l.correctCatalog(ctx, l.connections[i], l.random(100_000+i))
	})}
	held, err := l.API.ListQuarantine(ctx, l.merchant.id, l.API.ConnectorToken)
	errs = append(errs, err)
	for _, o := range held {
		errs = append(errs, l.API.ReplayQuarantined(ctx, l.merchant.id, l.API.ConnectorToken,
			o.ObservationID))
	}
	return errors.Join(errs...)
}

// correctCatalog delivers a valid document of each entity of a connection.
func (l *Load) correctCatalog(ctx context.Context, c *connection, random *rand.Rand) error {
	var batch []recording.Observation
	c.mu.Lock()
	kinds := map[string]string{}
	for id, e := range c.entities {
		kinds[id] = e.kind
	}
	c.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(kinds)) {
		batch = append(batch, c.nextRevision(kinds[id], id, random))
	}
	var e history.Event
	retry(ctx, random, maxAttempts, func() bool {
		e = l.observe(ctx, l.Client, c, batch)
		return recording.Final(e)
	})
	if e.Kind != history.OK {
		return errors.New("the catalog of " + c.id + " was not corrected: " + e.Error + e.Code)
	}
	return nil
}

// ConnectionIDs returns the ids of all connections.
func (l *Load) ConnectionIDs() []string {
	var all []string
	for _, c := range l.connections {
		all = append(all, c.id)
	}
	return all
}
