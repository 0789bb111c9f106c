// Package connector delivers what a shop sells to Storefront through operation 4, as any custom connector would: it is written
// to be read by somebody who has to write one, and uses nothing of this repository.
//
// The way of an entity is: give it a revision (Book), put it into a batch of at most 500 (Deliver), read the result of its
// position. What is worth another try is tried again with the same bytes, which is always safe: an observation that is there
// already is answered `duplicate`. What is final is reported and left alone.
package connector
