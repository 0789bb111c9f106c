// Package signalrules owns the rules for the elements of recordStorefrontSignals: which elements become
// signals, with which reason the others are rejected, and which visitor and client objects are discarded.
// Validation does no I/O.
package signalrules
