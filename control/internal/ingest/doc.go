// Package ingest owns the fetch of a provider's entity. A fetch takes a sequence number and then asks the
// provider. The answer is archived and becomes the next revision, unless a fetch with a greater number was
// applied before. An equal answer changes nothing, "not found" leaves a tombstone that wins over earlier
// fetches, and an answer that breaks a rule is quarantined.
//
// A webhook only marks its entity, by raising dirty_seq; its content is not used. One job per entity fetches:
// it reads the mark before the fetch, and compares it in the transaction that applies the fetch and completes
// the job. When the mark rose meanwhile, the job fetches again. Retries belong to the job.
package ingest
