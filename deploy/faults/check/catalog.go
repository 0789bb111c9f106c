package check

import (
	"fmt"
	"strings"
	"time"

	"storefront.internal/deploy/faults/collect"
	"storefront.internal/deploy/faults/history"
)

// truth is the first half of S11: the provider's, and at rest that of Redis, which holds the newest revision or none.
func (r *run) truth() {
	newest := map[key]int64{}
	for _, a := range r.state.Aggregates {
		newest[key{a.Connection, a.Item}] = a.Revision
	}
	for _, a := range r.state.Cached {
		if at := (key{a.Connection, a.Item}); r.ours[a.Connection] && a.Revision != newest[at] {
			r.found("S11", "Redis holds another revision than is stored", fmt.Sprintf("%s: %d, stored %d", at, a.Revision, newest[at]))
		}
	}
	for _, x := range r.state.Truth {
		if !r.ours[x.Connection] {
			continue
		}
		name := x.Connection + " " + x.Entity + " " + x.External
		switch {
		case x.Have == x.Want:
		case x.Have == "":
			r.found("S11", "the provider has an entity that is not applied", name)
		case x.Want == "":
			r.found("S11", "an entity is applied that the provider has not", name)
		default:
			r.found("S11", "an entity is not as the provider has it", name)
		}
	}
}

// seen is an item as one edge answered it.
type seen struct{ edge, item string }

// monotone is the second half of S11: a read that began after another had ended, at the same edge, tells no older revision, also
// when a new process has taken the edge's place. Only where that one found PostgreSQL away it may have believed Redis.
func (r *run) monotone() {
	reads := map[seen][]*call{}
	for _, c := range r.calls {
		if c.begin.Op == history.Item && c.kind() == history.OK && c.end.Revision > 0 {
			at := seen{c.begin.Edge, c.begin.Item}
			reads[at] = append(reads[at], c)
		}
	}
	for at, all := range reads {
		r.falls(at, all)
	}
}

// falls looks at the reads of one item at one edge, which are in the order of their begins. ended holds the greatest revision of
// those that had ended before, so each read is compared with what its edge had certainly answered.
func (r *run) falls(at seen, reads []*call) {
	for i, later := range reads {
		for j := i - 1; j >= 0 && j > i-window; j-- {
			earlier := reads[j]
			if earlier.end.At < later.begin.At && earlier.end.Revision > later.end.Revision && !r.believed(at.edge, earlier, later) {
				r.found("S11", "an edge answered an older revision after a newer one", fmt.Sprintf("%s %s: %d after %d", at.edge, at.item, later.end.Revision, earlier.end.Revision))
				return
			}
		}
	}
}

// window is how many reads back one is compared with.
const window = 200

// believed reports whether the later read may have been answered with what Redis held: another process had taken the edge's place,
// and it could not ask PostgreSQL.
func (r *run) believed(edge string, earlier, later *call) bool {
	anew := r.fault(earlier.end.At, later.begin.At, func(f *history.Fault) bool {
		return (f.Kind == "N1" || f.Kind == "N13") && strings.Contains(f.Detail, edge)
	})
	return anew && r.fault(later.begin.At-int64(unproven), later.end.At, func(f *history.Fault) bool {
		return f.Kind == "N9" || f.Kind == "N2" && strings.Contains(f.Detail, edge) || strings.Contains(f.Detail, "postgres")
	})
}

// unproven is how long after PostgreSQL came back what was believed may still be told: the wait for it, and the life of a copy.
const unproven = 5 * time.Second

func (r *run) fault(from, to int64, which func(*history.Fault) bool) bool {
	for i := range r.faults {
		if f := &r.faults[i]; f.At < to && f.Until > from && which(f) {
			return true
		}
	}
	return false
}

// thing names an entity.
type thing struct{ connection, entity, external string }

func (t thing) String() string { return t.connection + " " + t.entity + " " + t.external }

// archive is the first half of S12.
func (r *run) archive() {
	archived := map[string]*collect.Observation{}
	greatest := map[thing]int64{} // of what the archive says was applied
	for i := range r.state.Observations {
		o := &r.state.Observations[i]
		archived[o.ID] = o
		if at := (thing{o.Connection, o.Entity, o.External}); o.State == "accepted" && o.Revision > greatest[at] {
			greatest[at] = o.Revision
		}
	}
	applied := map[thing]*collect.Entity{}
	for i := range r.state.Entities {
		e := &r.state.Entities[i]
		at := thing{e.Connection, e.Entity, e.External}
		applied[at] = e
		if r.ours[e.Connection] && e.Revision > 0 && e.Revision != greatest[at] {
			r.found("S12", "the applied revision is not the greatest that was accepted", fmt.Sprintf("%s: %d, want %d", at, e.Revision, greatest[at]))
		}
	}
	for _, c := range r.calls {
		if c.begin.Op == history.Observe && c.kind() == history.OK {
			r.outcomes(c, archived, applied)
		}
	}
}

// outcomes compares the answers of one call with what lies there.
func (r *run) outcomes(c *call, archived map[string]*collect.Observation, applied map[thing]*collect.Entity) {
	for _, o := range c.end.Outcomes {
		if o.Index < 0 || o.Index >= len(c.begin.Observations) {
			r.found("S12", "an answer names a position that was not sent", c.end.RequestID)
			continue
		}
		sent := &c.begin.Observations[o.Index]
		at := thing{c.begin.Connection, sent.Entity, sent.External}
		if o.Status != "accepted" && o.Status != "duplicate" {
			continue
		}
		row := archived[o.Observation]
		switch {
		case row == nil:
			r.found("S12", o.Status+", and not in the archive", at.String()+" "+o.Observation)
		case row.Connection != at.connection || row.Entity != at.entity || row.External != at.external || row.Revision != sent.Revision:
			r.found("S12", "the archive has something else under the id that was answered", at.String()+" "+o.Observation)
		case o.Status == "accepted" && sent.Raw != "" && row.Raw != sent.Raw:
			r.found("S12", "archived otherwise than it was sent", at.String()+" "+o.Observation)
		}
		if e := applied[at]; e == nil || e.Revision < sent.Revision {
			r.found("S12", o.Status+", and an older revision is applied", fmt.Sprintf("%s: sent %d", at, sent.Revision))
		}
	}
}

// envelopes is the second half of S12.
func (r *run) envelopes() {
	told := map[string]bool{}
	for _, e := range r.state.Engine.Events {
		told[e.Observation] = true
	}
	for _, d := range append(append([]collect.Delivery{}, r.state.Pending...), r.state.Dead...) {
		if d.Kind == envelope {
			told[d.ID] = true
		}
	}
	for _, o := range r.state.Observations {
		if o.State == "accepted" && !told[o.ID] && r.ours[o.Connection] {
			r.found("S12", "accepted, and the engine is not told", o.Connection+" "+o.ID)
		}
	}
	for _, x := range r.state.Engine.Readings {
		if r.ours[x.Connection] && (x.Result == "missing" || x.Result == "mismatch") {
			r.found("S12", "the engine could not read what it was told of: "+x.Result, x.Connection+" "+x.Observation+" "+x.Detail)
		}
	}
}
