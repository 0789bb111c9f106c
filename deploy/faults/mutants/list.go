// Package mutants tests the checker with mutation testing: each mutant is a small patch against the source
// that plants a bug, with a scenario that makes the bug visible. It builds the mutant outside of the
// checkout, runs the scenario against a whole deployment, and reports which invariant detected it. Without a
// mutant, the scenarios must find nothing.
package mutants

import (
	"embed"

	"storefront.internal/deploy/faults/scenario"
)

// patches are unified diffs, one for each mutant.
//
//go:embed patches/*.patch
var patches embed.FS

// Mutant is one planted bug.
type Mutant struct {
	Name        string
	Description string   // of the bug
	Programs    []string // that the patch changes
	Scenario    string
	Detects     []string // invariants, of which one must be violated
}

// List returns all mutants.
func List() []Mutant { return append(ofSafety(), ofLiveness()...) }

// ofSafety are the bugs that lose, double or mix up what is stored.
func ofSafety() []Mutant {
	return []Mutant{
		{"ack_before_produce", "answers accepted before Kafka has acknowledged", []string{scenario.Edge},
			"broker unreachable", []string{"S1"}},
		{"done_before_ack", "resolves the claim before Kafka has acknowledged", []string{scenario.Edge},
			"broker unreachable", []string{"S3"}},
		{"late_writer", "goes on writing to Kafka after it answered 503", []string{scenario.Edge},
			"broker responses lost", []string{"S5"}},
		{"fold_not_gated", "folds signals that the ledger knows already", []string{scenario.Relay},
			"acks lost", []string{"S7"}},
		{"redis_alone_deduplicates", "stores duplicates from Kafka", []string{scenario.Relay}, "acks lost",
			[]string{"S1", "S5"}},
		{"lost_ignored", "answers accepted although another attempt has taken over the claim",
			[]string{scenario.Edge}, "edge paused after produce", []string{"S2"}},
		{"blind_delete", "deletes claims that another attempt holds", []string{scenario.Edge},
			"edge paused before produce", []string{"S2"}},
		{"body_reuse", "reuses the buffer of a record while it is being sent", []string{scenario.Edge},
			"many clients", []string{"S1", "S4", "S8"}},
		{"mac_of_no_connection", "accepts Decisions of other connections", []string{scenario.Edge},
			"foreign decisions", []string{"S4"}},
		{"decision_looked_up", "does not know a Decision that was just served", []string{scenario.Edge},
			"foreign decisions", []string{"S13"}},
		{"key_never_forgotten", "accepts a revoked key", []string{scenario.Edge}, "revoked key",
			[]string{"H18"}},
		{"cache_without_compare", "fills Redis with an older item", []string{scenario.Edge},
			"late cache fill", []string{"S11"}},
		{"redis_believed", "assumes that Redis has the newest revision", []string{scenario.Edge},
			"outdated Redis", []string{"S11"}},
		{"offsets_before_store", "commits offsets before the transaction and believes them",
			[]string{scenario.Relay}, "relay killed", []string{"S1"}},
		{"unsorted_locks", "locks cart lines in any order", []string{scenario.Relay}, "two sinks",
			[]string{"H9"}},
		{"poison_at_any_error", "parks signals after a temporary error of the database",
			[]string{scenario.Relay}, "database rejects rows", []string{"S1"}},
		{"settle_without_fence", "completes a lease that another relay holds", []string{scenario.Relay},
			"relay paused", []string{"S9"}},
		{"retry_after_401", "uses a rejected credential again", []string{scenario.Relay},
			"credential rejected", []string{"S6"}},
		{"body_not_frozen", "sends other bytes the second time", []string{scenario.Relay},
			"engine responses lost", []string{"S6"}},
		{"silence_is_consent", "treats a closed connection as delivered", []string{scenario.Relay},
			"requests truncated", []string{"S6"}},
		{"webhook_by_body", "drops a webhook with the body of an earlier one", []string{scenario.Control},
			"identical webhooks", []string{"S11"}},
		{"raw_written_anew", "archives other bytes than were sent", []string{scenario.Control},
			"custom connector", []string{"S12"}},
		{"older_revision_wins", "applies an older revision", []string{scenario.Control}, "custom connector",
			[]string{"S12"}},
	}
}

// ofLiveness are the bugs that stop the work or leave something behind for ever.
func ofLiveness() []Mutant {
	return []Mutant{
		{"ledger_waited_for", "waits for a ledger that hangs", []string{scenario.Edge}, "PostgreSQL hangs",
			[]string{"L1"}},
		{"item_verification_waited_for", "waits until PostgreSQL confirms an item that Redis has",
			[]string{scenario.Edge}, "PostgreSQL hangs", []string{"L1"}},
		{"redis_waited_for", "waits for a Redis that hangs", []string{scenario.Edge}, "Redis hangs",
			[]string{"L2"}},
		{"redis_given_up", "never asks a Redis again that hung", []string{scenario.Edge}, "Redis hangs",
			[]string{"L7"}},
		{"slow_broker_waited_for", "waits for a broker that does not answer", []string{scenario.Edge},
			"one broker black-holed", []string{"L3"}},
		{"provider_waited_for", "asks the provider before it answers a webhook",
			[]string{scenario.Control}, "provider hangs", []string{"L5"}},
		{"relay_waited_for", "answers when the relay has stored the signals", []string{scenario.Edge},
			"relays hang", []string{"L6"}},
		{"engine_waited_for", "waits for recommendations of an engine that hangs", []string{scenario.Edge},
			"engine hangs", []string{"L4"}},
		{"engine_given_up", "never sends to an engine again that failed", []string{scenario.Relay},
			"engine fails", []string{"L7"}},
		{"connections_leak", "counts closed connections as open", []string{scenario.Edge}, "greedy clients",
			[]string{"L9"}},
		{"body_budget_leaks", "never returns the room of a body", []string{scenario.Edge}, "greedy clients",
			[]string{"L9"}},
		{"mass_refusal_believed", "dead-letters everything that the engine refuses", []string{scenario.Relay},
			"engine refuses everything", []string{"L10"}},
		{"replay_without_envelopes", "replays interactions only", []string{scenario.Control},
			"envelopes refused", []string{"L8"}},
		{"quarantine_kept", "keeps corrected observations in the quarantine", []string{scenario.Control},
			"corrected product", []string{"L8"}},
		{"parked_kept", "does not store parked records that are replayed", []string{scenario.Relay},
			"signal parked", []string{"L8"}},
		{"erasure_kept", "does not execute erasures", []string{scenario.Relay}, "visitor erased",
			[]string{"L8", "S14"}},
		{"buyer_forgotten", "forgets the buyer of an order when a transaction is repeated",
			[]string{scenario.Relay}, "buyers redacted", []string{"S14"}},
		{"redaction_by_substring", "redacts buyers whose address contains the named one",
			[]string{scenario.Control}, "buyers redacted", []string{"S14"}},
	}
}
