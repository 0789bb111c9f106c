// Package intake owns the use case of recordStorefrontSignals. It decodes a batch (package signaljson),
// validates each element (signalrules), claims the valid signals (claims), asks the ledger about those that
// Redis may have forgotten, hands the new ones to Kafka as one record, and confirms the claims.
//
// It answers accepted only for a signal that Kafka acknowledged, and duplicate only for one that is known to
// be recorded, since a client throws away what it was told to be a duplicate. Everything else is a 503, after
// which a resend of the batch is right.
package intake
