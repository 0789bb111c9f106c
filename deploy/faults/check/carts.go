package check

import (
	"cmp"
	"fmt"
	"slices"

	"storefront.internal/deploy/faults/collect"
)

// place names a cart line.
type place struct{ connection, decision, item, variant string }

func (p place) String() string {
	return p.connection + " " + p.decision + " " + p.item + " " + p.variant
}

func placeOf(l *collect.Line) place { return place{l.Connection, l.Decision, l.Item, l.Variant} }

// most is the cap of a line (contract, section 2 "Cart lines").
const most = 1_000_000

// fold is the reference: the stored signals of one line, in the order in which the shopper acted, one after the other.
func fold(signals []*collect.Signal) (quantity int64) {
	slices.SortFunc(signals, func(a, b *collect.Signal) int {
		return cmp.Or(cmp.Compare(acted(a), acted(b)), cmp.Compare(a.Received, b.Received), cmp.Compare(a.Index, b.Index),
			cmp.Compare(a.ID, b.ID))
	})
	for _, s := range signals {
		n := int64(1)
		if s.Quantity != nil {
			n = int64(*s.Quantity)
		}
		switch s.Type {
		case "add_to_cart":
			quantity = min(quantity+n, most)
		case "update_quantity":
			quantity = n
		case "remove_from_cart":
			quantity = 0
		}
	}
	return quantity
}

// acted is when the shopper acted; a clock that is ahead counts as the arrival.
func acted(s *collect.Signal) int64 { return min(s.Occurred, s.Received) }

// carts is S7.
func (r *run) carts() {
	changes := map[place][]*collect.Signal{}
	for i := range r.state.Signals {
		s := &r.state.Signals[i]
		if !r.ours[s.Connection] {
			continue
		}
		if s.Type == "add_to_cart" || s.Type == "update_quantity" || s.Type == "remove_from_cart" {
			p := place{s.Connection, s.Decision, s.Item, s.Variant}
			changes[p] = append(changes[p], s)
		}
	}
	lines := map[place]*collect.Line{}
	for i := range r.state.Lines {
		l := &r.state.Lines[i]
		lines[placeOf(l)] = l
		if r.ours[l.Connection] && len(changes[placeOf(l)]) == 0 {
			r.found("S7", "a line that no signal made", placeOf(l).String())
		}
	}
	newest := map[place]*collect.Line{}
	waits := map[place]bool{}
	for k, s := range r.subjects {
		for _, x := range s.stored {
			if s.pending+s.dead > 0 {
				waits[place{k.connection, x.Decision, x.Item, x.Variant}] = true
			}
		}
		for _, receipt := range s.receipts {
			if l := receipt.Line; l != nil && (newest[placeOf(l)] == nil || newest[placeOf(l)].Revision < l.Revision) {
				newest[placeOf(l)] = l
			}
		}
	}
	for p, signals := range changes {
		r.line(p, signals, lines[p], newest[p], waits[p])
	}
}

func (r *run) line(p place, signals []*collect.Signal, stored, told *collect.Line, waits bool) {
	want := fold(signals)
	if stored == nil {
		r.found("S7", "no line for stored signals", p.String())
		return
	}
	if stored.Quantity != want {
		r.found("S7", "a line is not the fold of its signals", fmt.Sprintf("%s: %d, want %d", p, stored.Quantity, want))
	}
	if stored.Revision != int64(len(signals)) {
		r.found("S7", "a line was folded another number of times than it has signals", fmt.Sprintf("%s: %d, want %d", p, stored.Revision, len(signals)))
	}
	if waits {
		return
	}
	switch {
	case told == nil:
		r.found("S7", "the engine was told nothing of a line", p.String())
	case told.Revision != stored.Revision || told.Quantity != want:
		r.found("S7", "the engine's line is not the fold", fmt.Sprintf("%s: %d at revision %d, want %d at %d", p, told.Quantity, told.Revision, want, stored.Revision))
	}
}
