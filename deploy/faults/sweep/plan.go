// Package sweep kills processes at failpoints and checks the deployment afterwards: at each failpoint, at its
// first and its third hit, with clients that send again to the same edge, to the other edge, or not at all.
// In a round, one process of each program dies at a failpoint of its own.
package sweep

import (
	"fmt"

	"storefront.internal/deploy/faults/scenario"
	"storefront.internal/shared/failpoint"
)

// RetryPolicy is what a client does after a call without a response.
type RetryPolicy string

// The policies. There is only one control, which Other calls again.
const (
	Same  RetryPolicy = "same"  // call the same edge again
	Other RetryPolicy = "other" // call the other edge
	Never RetryPolicy = "never"
)

// Case is the death of a process.
type Case struct {
	Program, Point string
	Hit            int
	Policy         RetryPolicy
}

func (c Case) String() string { return fmt.Sprintf("%s hit %d, resend %s", c.Point, c.Hit, c.Policy) }

// Round is a set of cases, at most one for each program.
type Round []Case

// Points are the crash points by program, in the order in which package failpoint lists them.
func Points() map[string][]string {
	return map[string][]string{
		scenario.Edge: {failpoint.IntakeBeforeClaim, failpoint.IntakeClaimed, failpoint.IntakeProduced,
			failpoint.IntakeConfirmed, failpoint.ItemLoaded},
		scenario.Relay: {failpoint.SinkBeforeCommit, failpoint.SinkAfterCommit, failpoint.SinkCommitted,
			failpoint.DeliverLeased, failpoint.DeliverSent,
			failpoint.DeliverAnswered, failpoint.DeliverSettled, failpoint.EraseChunk},
		scenario.Control: {failpoint.ObserveBeforeCommit, failpoint.ObserveAfterCommit,
			failpoint.WebhookBeforeCommit, failpoint.WebhookAfterCommit,
			failpoint.FetchBegun, failpoint.FetchAnswered, failpoint.FetchBeforeCommit,
			failpoint.FetchApplied, failpoint.PageAnswered,
			failpoint.PageBeforeCommit, failpoint.PageAfterCommit, failpoint.KeyCommitted,
			failpoint.KeyWritten, failpoint.ItemsRead,
			failpoint.ItemsWritten, failpoint.SagaCalling, failpoint.SagaCalled},
	}
}

// Plan returns all rounds: each failpoint with each hit and policy.
func Plan() []Round {
	var all []Round
	points := Points()
	rounds := 0
	for _, of := range points {
		rounds = max(rounds, len(of))
	}
	for _, hit := range []int{1, 3} {
		for _, policy := range []RetryPolicy{Same, Other, Never} {
			for i := range rounds {
				var r Round
				for _, program := range []string{scenario.Edge, scenario.Relay, scenario.Control} {
					if i < len(points[program]) {
						r = append(r, Case{program, points[program][i], hit, policy})
					}
				}
				all = append(all, r)
			}
		}
	}
	return all
}
