// Package mutants owns the bugs that are planted to see the checker find them: small patches against today's source, each with a
// scenario that aims a fault at it. It builds a mutant beside the checkout, never in it, runs the scenario against the whole
// deployment, and tells which invariant caught it. The same scenarios without a bug must find nothing.
package mutants

import (
	"embed"

	"storefront.internal/deploy/faults/stage"
)

// patches are unified diffs, one per mutant.
//
//go:embed patches/*.patch
var patches embed.FS

// Mutant is one planted bug.
type Mutant struct {
	Name     string
	Says     string   // what is wrong with it
	Programs []string // those that it changes
	Scenario string
	Wants    []string // the invariants of which one must see it
}

// List is every mutant.
func List() []Mutant {
	return []Mutant{
		{"ack_before_produce", "says accepted before Kafka has acknowledged", []string{stage.Edge}, "broker gone", []string{"S1"}},
		{"done_before_ack", "confirms the claim before the hand-off", []string{stage.Edge}, "broker gone", []string{"S3"}},
		{"late_writer", "goes on writing to Kafka after the 503", []string{stage.Edge}, "deaf edge", []string{"S5"}},
		{"fold_not_gated", "folds what the ledger knew", []string{stage.Relay}, "lost acks", []string{"S7"}},
		{"redis_alone_deduplicates", "stores whatever Kafka brings", []string{stage.Relay}, "lost acks", []string{"S1", "S5"}},
		{"lost_ignored", "says accepted although another attempt took over", []string{stage.Edge}, "stalled after the hand-off", []string{"S2"}},
		{"blind_delete", "deletes claims that another attempt holds", []string{stage.Edge}, "stalled before the hand-off", []string{"S2"}},
		{"body_reuse", "uses a record's buffer again while it is being sent", []string{stage.Edge}, "crowd", []string{"S1", "S4", "S8"}},
		{"mac_of_no_connection", "takes Decisions of anybody", []string{stage.Edge}, "strangers", []string{"S4"}},
		{"decision_looked_up", "does not know a Decision that was served a moment ago", []string{stage.Edge}, "strangers", []string{"S13"}},
		{"key_never_forgotten", "goes on taking a revoked key", []string{stage.Edge}, "revoked key", []string{"H18"}},
		{"cache_without_compare", "fills Redis with an older item", []string{stage.Edge}, "stale fill", []string{"S11"}},
		{"redis_believed", "takes what Redis holds for the newest", []string{stage.Edge}, "Redis behind", []string{"S11"}},
		{"offsets_before_store", "commits offsets before the transaction", []string{stage.Relay}, "sink killed", []string{"S1"}},
		{"unsorted_locks", "locks cart lines in any order", []string{stage.Relay}, "two sinks", []string{"H9"}},
		{"poison_at_any_error", "parks what the database could not take for a moment", []string{stage.Relay}, "refusing database", []string{"S1"}},
		{"settle_without_fence", "settles a lease that another relay holds", []string{stage.Relay}, "stalled courier", []string{"S9"}},
		{"retry_after_401", "goes on with a credential that was refused", []string{stage.Relay}, "refused credential", []string{"S6"}},
		{"body_not_frozen", "delivers other bytes the second time", []string{stage.Relay}, "deaf engine", []string{"S6"}},
		{"silence_is_consent", "takes a cut connection for delivered", []string{stage.Relay}, "cut requests", []string{"S6"}},
		{"webhook_by_body", "drops a notification whose body came before", []string{stage.Control}, "same news", []string{"S11"}},
		{"raw_written_anew", "archives other bytes than were sent", []string{stage.Control}, "connector", []string{"S12"}},
		{"older_revision_wins", "applies an older revision", []string{stage.Control}, "connector", []string{"S12"}},
	}
}
