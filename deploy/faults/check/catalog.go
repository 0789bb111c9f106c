package check

import (
	"fmt"
	"strings"
	"time"

	"storefront.internal/deploy/faults/collect"
	"storefront.internal/deploy/faults/history"
)

// checkCatalog checks the first part of S11: the entities equal the provider's, and Redis has the newest
// revision or none.
func (r *checker) checkCatalog() {
	newest := map[scopedID]int64{}
	for _, a := range r.state.Aggregates {
		newest[scopedID{a.Connection, a.Item}] = a.Revision
	}
	for _, a := range r.state.Cached {
		if at := (scopedID{a.Connection, a.Item}); r.connections[a.Connection] && a.Revision != newest[at] {
			r.violation("S11", "Redis has another revision than PostgreSQL",
				fmt.Sprintf("%s: %d, stored %d", at, a.Revision, newest[at]))
		}
	}
	for _, x := range r.state.ProviderEntities {
		if !r.connections[x.Connection] {
			continue
		}
		name := x.Connection + " " + x.Entity + " " + x.External
		switch {
		case x.Applied == x.Provider:
		case x.Applied == "":
			r.violation("S11", "an entity of the provider is not applied", name)
		case x.Provider == "":
			r.violation("S11", "an applied entity does not exist at the provider", name)
		default:
			r.violation("S11", "an entity differs from the provider's", name)
		}
	}
}

// itemAtEdge identifies an item at an edge.
type itemAtEdge struct{ edge, item string }

// checkMonotonicReads checks the second part of S11: a read that began after the end of another one at the
// same edge has no older revision, also after a restart of the edge. Only an edge that was restarted and
// could not reach PostgreSQL may have trusted Redis.
func (r *checker) checkMonotonicReads() {
	reads := map[itemAtEdge][]*call{}
	for _, c := range r.calls {
		if c.begin.Op == history.Item && c.kind() == history.OK && c.end.Revision > 0 {
			at := itemAtEdge{c.begin.Edge, c.begin.Item}
			reads[at] = append(reads[at], c)
		}
	}
	for at, all := range reads {
		r.checkReads(at, all)
	}
}

// checkReads compares the reads of an item at an edge, which are in the order of their begins.
func (r *checker) checkReads(at itemAtEdge, reads []*call) {
	for i, later := range reads {
		for j := i - 1; j >= 0 && j > i-comparedReads; j-- {
			earlier := reads[j]
			if earlier.end.At < later.begin.At && earlier.end.Revision > later.end.Revision &&
				!r.mayHaveTrustedRedis(at.edge, earlier, later) {
				r.violation("S11", "an edge answered an older revision after a newer one",
					fmt.Sprintf("%s %s: %d after %d", at.edge, at.item, later.end.Revision,
						earlier.end.Revision))
				return
			}
		}
	}
}

// comparedReads is the number of earlier reads that a read is compared with.
const comparedReads = 200

// mayHaveTrustedRedis reports whether the later read may have been answered with what Redis held: another
// process had taken the edge's place, and it could not ask PostgreSQL.
func (r *checker) mayHaveTrustedRedis(edge string, earlier, later *call) bool {
	anew := r.anyFault(earlier.end.At, later.begin.At, func(f *history.Fault) bool {
		return (f.Kind == "N1" || f.Kind == "N13") && strings.Contains(f.Detail, edge)
	})
	return anew && r.anyFault(later.begin.At-int64(staleAfterRecovery), later.end.At,
		func(f *history.Fault) bool {
			return f.Kind == "N9" || f.Kind == "N2" && strings.Contains(f.Detail, edge) ||
				strings.Contains(f.Detail, "postgres")
		})
}

// staleAfterRecovery is the time after a recovery of PostgreSQL in which an edge may still answer from Redis:
// the wait for PostgreSQL and the life of a cached item.
const staleAfterRecovery = 5 * time.Second

func (r *checker) anyFault(from, to int64, which func(*history.Fault) bool) bool {
	for i := range r.faults {
		if f := &r.faults[i]; f.At < to && f.Until > from && which(f) {
			return true
		}
	}
	return false
}

// entityKey identifies an entity.
type entityKey struct{ connection, entity, external string }

func (t entityKey) String() string { return t.connection + " " + t.entity + " " + t.external }

// checkArchive checks the first part of S12.
func (r *checker) checkArchive() {
	archived := map[string]*collect.Observation{}
	greatest := map[entityKey]int64{} // of the accepted observations
	for i := range r.state.Observations {
		o := &r.state.Observations[i]
		archived[o.ID] = o
		if at := (entityKey{o.Connection, o.Entity, o.External}); o.State == "accepted" &&
			o.Revision > greatest[at] {
			greatest[at] = o.Revision
		}
	}
	applied := map[entityKey]*collect.Entity{}
	for i := range r.state.Entities {
		e := &r.state.Entities[i]
		at := entityKey{e.Connection, e.Entity, e.External}
		applied[at] = e
		if r.connections[e.Connection] && e.Revision > 0 && e.Revision != greatest[at] {
			r.violation("S12", "the applied revision is not the greatest that was accepted",
				fmt.Sprintf("%s: %d, want %d", at, e.Revision, greatest[at]))
		}
	}
	for _, c := range r.calls {
		if c.begin.Op == history.Observe && c.kind() == history.OK {
			r.checkObservationResults(c, archived, applied)
		}
	}
}

// checkObservationResults compares the results of a call with the state.
func (r *checker) checkObservationResults(c *call, archived map[string]*collect.Observation,
	applied map[entityKey]*collect.Entity) {
	for _, o := range c.end.ObservationResults {
		if o.Index < 0 || o.Index >= len(c.begin.Observations) {
			r.violation("S12", "a response has a result for a position that was not sent", c.end.RequestID)
			continue
		}
		sent := &c.begin.Observations[o.Index]
		at := entityKey{c.begin.Connection, sent.Entity, sent.External}
		if o.Status != "accepted" && o.Status != "duplicate" {
			continue
		}
		row := archived[o.Observation]
		switch {
		case row == nil:
			r.violation("S12", o.Status+", but not in the archive", at.String()+" "+o.Observation)
		case row.Connection != at.connection || row.Entity != at.entity || row.External != at.external ||
			row.Revision != sent.Revision:
			r.violation("S12", "the archive has another observation with this id",
				at.String()+" "+o.Observation)
		case o.Status == "accepted" && sent.Raw != "" && row.Raw != sent.Raw:
			r.violation("S12", "not archived as it was sent", at.String()+" "+o.Observation)
		}
		if e := applied[at]; e == nil || e.Revision < sent.Revision {
			r.violation("S12", o.Status+", but an older revision is applied",
				fmt.Sprintf("%s: sent %d", at, sent.Revision))
		}
	}
}

// checkEnvelopes checks the second part of S12.
func (r *checker) checkEnvelopes() {
	told := map[string]bool{}
	for _, e := range r.state.Engine.Events {
		told[e.Observation] = true
	}
	for _, d := range append(append([]collect.Delivery{}, r.state.Pending...), r.state.Dead...) {
		if d.Kind == envelope {
			told[d.ID] = true
		}
	}
	redacted := map[string]bool{} // they have no snapshot
	for _, o := range r.state.Observations {
		redacted[o.ID] = o.Redacted != nil
		if o.State == "accepted" && !told[o.ID] && r.connections[o.Connection] {
			r.violation("S12", "accepted, but the engine has no envelope", o.Connection+" "+o.ID)
		}
	}
	for _, x := range r.state.Engine.SnapshotReads {
		if r.connections[x.Connection] && !redacted[x.Observation] &&
			(x.Result == "missing" || x.Result == "mismatch") {
			r.violation("S12", "the engine could not read a snapshot: "+x.Result,
				x.Connection+" "+x.Observation+" "+x.Detail)
		}
	}
}
