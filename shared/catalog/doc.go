// Package catalog owns the vocabulary of what a store sells (spec.md "Catalog aggregate", "Observation", "Canonical
// snapshot"; contract, section 3 "Observation", "Custom documents", "Digest"): the three kinds of document, the strict
// reading of what a connector delivers, the completion with our ids, and the bytes that are stored, digested and served.
//
// The way of a delivery is Split (the body of operation 4 into elements), ReadObservation (an element into an
// observation, or into the reason why not), Complete (the canonical bytes) and Digest. Compose writes the bytes of
// operation 2.
//
// A document is read from its bytes by a reader of its own: names match exactly, a name given twice, an escape that
// yields NUL or no Unicode scalar, more than 32 nested containers and huge exponents are flaws, and every flaw names its
// rule and its place. The canonical bytes are written by hand as well, since their digest must outlive any release of
// an encoder.
//
// The package refuses to do I/O, to know revisions that were applied before (the compare-and-set is the store's), and
// to put any value that a connector sent into a reason: an order document holds buyer data.
package catalog
