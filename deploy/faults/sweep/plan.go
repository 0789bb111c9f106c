// Package sweep kills each process at each of its crash points, one after the other: every point, at its first and at its third hit,
// with clients that send again to the same place, to another one, or never. The list is enumerated and not drawn; several
// processes die in one round, since each has a point of its own. What is left is judged after every round.
package sweep

import (
	"fmt"

	"storefront.internal/deploy/faults/stage"
	"storefront.internal/shared/crashpoint"
)

// Policy is what a client does about a call that was not answered.
type Policy string

// The policies.
const (
	Same  Policy = "same"  // it calls the same place again
	Other Policy = "other" // it calls the other edge; there is one control
	Never Policy = "never"
)

// Case is one process that dies.
type Case struct {
	Program, Point string
	Hit            int
	Policy         Policy
}

func (c Case) String() string { return fmt.Sprintf("%s hit %d, resend %s", c.Point, c.Hit, c.Policy) }

// Round is what dies in one run of the traffic: at most one process of each program.
type Round []Case

// Points are the crash points by program, in the order in which they stand in package crashpoint.
func Points() map[string][]string {
	return map[string][]string{
		stage.Edge: {crashpoint.IntakeBeforeClaim, crashpoint.IntakeClaimed, crashpoint.IntakeProduced, crashpoint.IntakeConfirmed, crashpoint.ItemLoaded},
		stage.Relay: {crashpoint.SinkBeforeCommit, crashpoint.SinkAfterCommit, crashpoint.SinkCommitted, crashpoint.DeliverLeased, crashpoint.DeliverSent,
			crashpoint.DeliverAnswered, crashpoint.DeliverSettled, crashpoint.EraseChunk},
		stage.Control: {crashpoint.ObserveBeforeCommit, crashpoint.ObserveAfterCommit, crashpoint.WebhookBeforeCommit, crashpoint.WebhookAfterCommit,
			crashpoint.FetchBegun, crashpoint.FetchAnswered, crashpoint.FetchBeforeCommit, crashpoint.FetchApplied, crashpoint.PageAnswered,
			crashpoint.PageBeforeCommit, crashpoint.PageAfterCommit, crashpoint.KeyCommitted, crashpoint.KeyWritten, crashpoint.ItemsRead,
			crashpoint.ItemsWritten, crashpoint.SagaCalling, crashpoint.SagaCalled},
	}
}

// Plan is every round: hits and policies for each point.
func Plan() []Round {
	var all []Round
	points := Points()
	for _, hit := range []int{1, 3} {
		for _, policy := range []Policy{Same, Other, Never} {
			for i := range longest(points) {
				var r Round
				for _, program := range []string{stage.Edge, stage.Relay, stage.Control} {
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

func longest(points map[string][]string) int {
	n := 0
	for _, of := range points {
		n = max(n, len(of))
	}
	return n
}
