// Package demo delivers the demo shop with the connector. It owns the order of the entities and the report of
// a run. A connector of your own replaces package shop and keeps the rest.
package demo

import (
	"context"
	"fmt"
	"strings"

	"storefront.internal/deploy/democonnector/connector"
	"storefront.internal/deploy/democonnector/shop"
)

// Report is what came of a run.
type Report struct {
	Counts map[string]int // results by status
	// FirstItem is Storefront's id of the shop's first product.
	FirstItem string
	Problems  []string // entities that a person has to mend
}

// String is the report in one line, and a line per problem.
func (r Report) String() string {
	text := fmt.Sprintf("%d accepted, %d duplicate, %d stale", r.Counts[connector.Accepted],
		r.Counts[connector.Duplicate], r.Counts[connector.Stale])
	return strings.Join(append([]string{text}, r.Problems...), "\n")
}

// Observations is the whole shop as a connector says it: categories first, parents before children.
func Observations() []connector.Observation {
	var all []connector.Observation
	for _, c := range shop.Categories() {
		all = append(all, connector.Observation{Entity: connector.Category, ExternalID: c.ExternalID,
			Operation:       connector.Upsert,
			SourceUpdatedAt: c.UpdatedAt, Document: c.Document, Raw: c.Raw})
	}
	for _, p := range shop.Products() {
		all = append(all, connector.Observation{Entity: connector.Product, ExternalID: p.ExternalID,
			Operation:       connector.Upsert,
			SourceUpdatedAt: p.UpdatedAt, Document: p.Document, Raw: p.Raw})
	}
	return all
}

// Run delivers the shop once. path is the file of the revisions: a second run with it gets only duplicates,
// unless the shop changed.
func Run(ctx context.Context, c connector.Config, path string) (Report, error) {
	revisions, err := connector.OpenRevisions(path)
	if err != nil {
		return Report{}, err
	}
	all := Observations()
	if err := revisions.Assign(all); err != nil {
		return Report{}, err
	}
	if err := revisions.Save(); err != nil {
		return Report{}, err
	}
	results, err := connector.New(c).Deliver(ctx, all)
	return report(all, results), err
}

func report(all []connector.Observation, results []connector.Result) Report {
	r := Report{Counts: map[string]int{}}
	for i, result := range results {
		r.Counts[result.Status]++
		if !result.Settled() {
			r.Problems = append(r.Problems,
				fmt.Sprintf("%s %s: %s %s", all[i].Entity, all[i].ExternalID, result.Status, result.Reason))
		}
		if r.FirstItem == "" && all[i].Entity == connector.Product {
			r.FirstItem = result.EntityID
		}
	}
	return r
}
