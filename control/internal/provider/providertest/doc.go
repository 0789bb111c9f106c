// Package providertest is what the rest of control relies on from every adapter, as tests: each adapter passes them
// against a small server of its own, and the same suite may be pointed at any faithful fake. It is imported by tests
// alone and reaches no binary.
package providertest
