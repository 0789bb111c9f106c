// Package installation owns how a shop of a provider becomes a connection, and the webhook subscriptions at
// the provider.
//
// Open stores the connection, its endpoints, the sealed credential, the saga and its job in one transaction,
// and calls no provider. The saga's job advances it from there:
//
//	opened ── subscriptions created ─▶ webhooks_registered ── run opened ─▶ bootstrap_started ─▶ completed
//	   │                                       │                                  │
//	   └───────────────────────────────────────┴── the last attempt failed ───────┴──▶ failed
//	                                                                                     │
//	webhooks_registered ◀── another attempt of the first step, at ever longer intervals ─┘
//
// Every step can run again: subscriptions are listed before one is created, and a second bootstrap run is not
// opened while one is unfinished. Two runners of one saga do no harm: each change is a compare-and-set on
// epoch and state, and a runner that lost stops before its next call. A failed saga gets another attempt
// whenever its age has doubled, at most a day later, and at once when a bootstrap run is opened or the shop
// comes back. Installing a store again replaces app, credential and scope, raises the epoch and begins at
// opened.
//
// The sweep repairs subscriptions that a provider lost or doubled. Retries of single calls belong to the
// adapters.
package installation
