// Package observation owns observations, which say what an entity of a shop is: each is archived, compared
// with the applied revision and, when accepted, becomes a snapshot for the engine, an envelope that tells the
// engine of it, and the aggregate that shoppers read.
//
//	element ──▶ rejected (cannot be archived)
//	   └─ archived ──▶ quarantined (breaks a rule; the revision stays free) ──replay──▶ compared again
//	                └▶ compared with the applied revision: greater accepted, smaller stale,
//	                   equal duplicate (same digest; not archived again) or conflict
//
// The rules are pure functions of what the store has locked: Fold compares a batch with the applied
// revisions, Plan says what changes. The store applies a batch in one transaction. A product contains the
// names of its categories, so a changed category raises the refresh_revision of its items (Recompose of the
// store). Elements are read by package catalog. Nothing of an order appears in a log, an error or a metric.
package observation
