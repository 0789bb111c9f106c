// Package observation owns the path that follows normalization (spec.md "Observation"; architecture "The ways of an
// entity"): what was delivered is archived, compared with the revision that is applied, and, once accepted, becomes a
// snapshot that the engine may read, an envelope that tells it so, and the aggregate that shoppers read.
//
//	element ──▶ rejected (cannot be archived)
//	   └─ archived ──▶ quarantined (breaks a rule; the revision is not used up) ──replay──▶ read and compared again
//	                └▶ compared with the applied revision: greater accepted, smaller stale,
//	                   equal duplicate (same digest; not archived anew) or conflict
//
// The rules are pure and work on what the store has locked: Fold compares a batch with the applied revisions, Plan says
// what changes. The store does all of a batch in one transaction, set-wise. A product carries the names of its categories,
// so a changed category gives the items under it another refresh_revision (the store's Recompose).
//
// The package refuses to read elements (package catalog does), to know HTTP or SQL, and to put anything of an order into
// a log, an error or a metric.
package observation
