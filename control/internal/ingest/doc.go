// Package ingest owns the path of a provider's entity (architecture, "The ways of an entity"; contract, section 3
// "Revision"): a number is taken, then the provider is asked, and what it answered is archived and becomes the next
// revision unless a fetch with a greater number is applied. What is equal changes nothing; an entity that the provider
// says is gone leaves a tombstone that wins over fetches begun before it; what breaks a rule is quarantined.
//
// Notifications only mark an entity. One job at a time fetches it: the mark is read before the fetch and compared when it
// is applied, and in the same transaction the job completes. A mark that moved meanwhile causes another fetch.
//
// The package refuses to believe a notification, to retry by itself, and to know HTTP, SQL or queues.
package ingest
