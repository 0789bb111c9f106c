// Package provider owns what control means by a platform of shops: the Adapter interface that each platform
// implements, the registry of mounted adapters, the errors by which a caller decides whether to retry, and
// the check that a document which an adapter built passes the catalog's rules.
//
// An adapter translates; it does not store, log, retry or number revisions. A webhook is a hint to fetch:
// only a fetch that finds nothing deletes an entity.
//
// Package payload reads the loose JSON of providers, package remote makes calls and turns responses into
// errors, and each platform has a package of its own. Package providertest is the suite that every adapter
// passes.
package provider
