// Package providertest is the conformance suite of adapters: what the rest of control relies on. Each adapter
// passes it against a small server in its own tests and against the fakes of the local stack. Only tests
// import it.
package providertest
