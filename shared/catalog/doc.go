// Package catalog owns the vocabulary of a shop's catalog: the three kinds of document, their strict
// validation as connectors deliver them, their completion with our ids, and the canonical bytes that are
// stored, digested and served.
//
// A delivered batch goes through Split (the request body of deliver_observations into elements),
// ReadObservation (an element into an observation, or into the violation that quarantines it), Complete (the
// canonical bytes) and Digest. Compose returns the body of getCatalogItem.
//
// jsontext parses. The rules go beyond it: member names match exactly and occur once, escapes yield neither
// NUL nor lone surrogates, at most 32 containers are nested, and exponents are bounded. Each violation names
// its rule and its JSON Pointer. The canonical bytes are written by hand, since their digest must not depend
// on the release of an encoder.
//
// The package does no I/O and does not know applied revisions: the compare-and-set is the store's. A
// violation never contains a delivered value, since orders hold buyer data.
package catalog
