// Package installation owns how a shop of a provider becomes a connection (spec.md "Open the durable installation saga";
// contract, section 3 "Installation", "Subscriptions at the provider are desired state").
//
// Open stores the connection, its endpoints, the sealed credential, the saga and its job in one transaction, and calls
// nobody. The runner takes the saga on from there:
//
//	opened ── subscriptions made ──▶ webhooks_registered ── load opened ──▶ bootstrap_started ──▶ completed
//	   │                                     │                                    │
//	   ▲                                     │                                    │
//	   ├─────────────────────────────────────┴── the last attempt failed ─────────┴──────────▶ failed
//	   └──────────────────────────── tried once more, ever more rarely ───────────────────────────┘
//
// Every step can run again: subscriptions are listed before one is made, and a load that runs is not opened anew. A
// runner holds a lease on the saga; one that lost it, or whose store was installed again meanwhile (another epoch),
// stops before its next call. One that failed is tried again by itself, with one attempt each time that the time since its
// opening has doubled (at most a day later), and at once when a load is opened by operation 8 or the shop comes back. Installing a store again replaces app, credential and scope and begins at opened.
//
// The sweep mends subscriptions that a provider lost or doubled. The package refuses to retry calls on its own account,
// to page a provider and to believe one: adapters translate, bootstrap loads.
package installation
