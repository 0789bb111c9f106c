// Package provider owns what control means by a platform of shops (spec.md "Deliver a provider webhook"; contract,
// section 3 "Webhook topic", "Subscriptions at the provider are desired state"): the Adapter that each platform is
// behind, the registry of those that are mounted, the errors by which a caller decides whether to come back, and the
// judgement that a document which an adapter built is one by the catalog's rules.
//
// An adapter translates and nothing else. It refuses to store, to log, to retry, to number revisions and to believe a
// notification: what a notification says is a hint to fetch, and only a fetch that finds nothing makes a delete.
//
// Beneath it: payload reads the loose JSON of providers, remote makes calls and gives their answers a meaning, and a
// package per platform knows that platform. providertest is the suite that every adapter passes.
package provider
