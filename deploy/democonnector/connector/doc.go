// Package connector delivers what a shop sells to Storefront (deliver_observations), as any custom connector
// would. It is an example for authors of connectors, so it uses no other package of this repository, not even
// its back-off.
//
// An entity gets a revision (Revisions), goes into a batch of at most 500 (Deliver), and has a result at its
// position. Temporary failures are retried with the same bytes, which is always safe: an observation that is
// stored already is a `duplicate`. Final failures are reported.
package connector
