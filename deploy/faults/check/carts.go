package check

import (
	"cmp"
	"fmt"
	"slices"

	"storefront.internal/deploy/faults/collect"
)

// lineKey identifies a cart line.
type lineKey struct{ connection, decision, item, variant string }

func (p lineKey) String() string {
	return p.connection + " " + p.decision + " " + p.item + " " + p.variant
}

func keyOf(l *collect.CartLine) lineKey { return lineKey{l.Connection, l.Decision, l.Item, l.Variant} }

// maxQuantity is the largest quantity of a cart line.
const maxQuantity = 1_000_000

// fold returns the quantity of a cart line from its stored signals, in the order in which the shopper acted.
func fold(signals []*collect.Signal) (quantity int64) {
	slices.SortFunc(signals, func(a, b *collect.Signal) int {
		return cmp.Or(cmp.Compare(effectiveTime(a), effectiveTime(b)), cmp.Compare(a.Received, b.Received),
			cmp.Compare(a.Index, b.Index),
			cmp.Compare(a.ID, b.ID))
	})
	for _, s := range signals {
		n := int64(1)
		if s.Quantity != nil {
			n = int64(*s.Quantity)
		}
		switch s.Type {
		case "add_to_cart":
			quantity = min(quantity+n, maxQuantity)
		case "update_quantity":
			quantity = n
		case "remove_from_cart":
			quantity = 0
		}
	}
	return quantity
}

// effectiveTime is the time of the shopper's action, or the arrival if the shopper's clock is ahead of it.
func effectiveTime(s *collect.Signal) int64 { return min(s.Occurred, s.Received) }

// checkCartLines checks S7.
func (r *checker) checkCartLines() {
	changes := map[lineKey][]*collect.Signal{}
	for i := range r.state.Signals {
		s := &r.state.Signals[i]
		if !r.connections[s.Connection] {
			continue
		}
		if s.Type == "add_to_cart" || s.Type == "update_quantity" || s.Type == "remove_from_cart" {
			p := lineKey{s.Connection, s.Decision, s.Item, s.Variant}
			changes[p] = append(changes[p], s)
		}
	}
	lines := map[lineKey]*collect.CartLine{}
	for i := range r.state.Lines {
		l := &r.state.Lines[i]
		lines[keyOf(l)] = l
		if r.connections[l.Connection] && len(changes[keyOf(l)]) == 0 {
			r.violation("S7", "a cart line without signals", keyOf(l).String())
		}
	}
	newest := map[lineKey]*collect.CartLine{}
	waits := map[lineKey]bool{}
	for k, s := range r.signals {
		for _, x := range s.stored {
			if s.pending+s.dead > 0 {
				waits[lineKey{k.connection, x.Decision, x.Item, x.Variant}] = true
			}
		}
		for _, receipt := range s.receipts {
			if l := receipt.CartLine; l != nil &&
				(newest[keyOf(l)] == nil || newest[keyOf(l)].Revision < l.Revision) {
				newest[keyOf(l)] = l
			}
		}
	}
	for p, signals := range changes {
		r.checkCartLine(p, signals, lines[p], newest[p], waits[p])
	}
}

func (r *checker) checkCartLine(p lineKey, signals []*collect.Signal, stored, told *collect.CartLine,
	waits bool) {
	want := fold(signals)
	if stored == nil {
		r.violation("S7", "no cart line for stored signals", p.String())
		return
	}
	if stored.Quantity != want {
		r.violation("S7", "a cart line is not the fold of its signals",
			fmt.Sprintf("%s: %d, want %d", p, stored.Quantity, want))
	}
	if stored.Revision != int64(len(signals)) {
		r.violation("S7", "a cart line's revision is not the number of its signals",
			fmt.Sprintf("%s: %d, want %d", p, stored.Revision, len(signals)))
	}
	if waits {
		return
	}
	switch {
	case told == nil:
		r.violation("S7", "the engine does not have a cart line", p.String())
	case told.Revision != stored.Revision || told.Quantity != want:
		r.violation("S7", "the engine's cart line is not the fold",
			fmt.Sprintf("%s: %d at revision %d, want %d at %d", p, told.Quantity, told.Revision, want,
				stored.Revision))
	}
}
