// Package webtest tests the browser SDK and the demo shop in real browsers against the real services on
// stores of their own. Verdicts are taken from the service, that is from the ledger in PostgreSQL and from
// the demo engine, never from the page. The campaign plays shoppers while the way between browser and edge,
// and the stores behind it, fail; then every signal that a page minted is at the engine exactly once.
//
// The tests need a build tag, since they need browsers: `make test-web`, `make web-all`, `make web-campaign`.
package webtest
