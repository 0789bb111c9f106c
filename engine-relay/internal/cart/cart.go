// Package cart owns the fold of cart signals into lines (contract, section 2 "Cart lines"): one line per Decision, item
// and variant, the same for every order in which its signals arrive. It is pure arithmetic. It refuses to know whether
// a signal was folded before: whoever calls Fold has asked the ledger, and folds each signal once.
//
// What a line is, is decided by the order in which the shopper acted (Key). The last signal that sets or removes hides
// everything before it; the adds after it count on top. So a line needs no history: the greatest set-or-remove and the
// adds with greater keys are enough to take any signal at any time, late ones included.
package cart

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

const (
	// MaxQuantity caps a line.
	MaxQuantity = 1_000_000
	// MaxAdds bounds what a line remembers. Beyond it the oldest two adds become one, at the place of the later: only a
	// set that arrives late, and that lies between exactly these two, would see the difference.
	MaxAdds = 4096
)

// Key is the place of a signal in the order in which the shopper acted: the instant (of the arrival, when the shopper's
// clock was ahead of it), then the arrival, the position in the request, the id. Instants are Unix microseconds.
type Key struct {
	At       int64
	Received int64
	Index    int
	Signal   ident.SignalID
}

// KeyOf returns the signal's place.
func KeyOf(occurred, received time.Time, index int, id ident.SignalID) Key {
	at, arrival := occurred.UnixMicro(), received.UnixMicro()
	return Key{At: min(at, arrival), Received: arrival, Index: index, Signal: id}
}

// Compare orders keys as cmp.Compare does.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.At, other.At), cmp.Compare(k.Received, other.Received),
		cmp.Compare(k.Index, other.Index), strings.Compare(string(k.Signal), string(other.Signal)))
}

// Change is what one signal does to its line: it sets the quantity, or adds to it.
type Change struct {
	Key      Key
	Set      bool
	Quantity int32
}

// ChangeOf returns what the cart signal does, by the table of spec.md "Signal": an add of 1 when the quantity is left
// out, a remove as a set to 0. The second result is false for a type that changes no cart.
func ChangeOf(s *signal.Signal, received time.Time, index int) (Change, bool) {
	c := Change{Key: KeyOf(s.OccurredAt, received, index, s.ID)}
	switch s.Type {
	case signal.AddToCart:
		c.Quantity = 1
	case signal.UpdateQuantity:
		c.Set = true
	case signal.RemoveFromCart:
		c.Set = true
		return c, true
	default:
		return Change{}, false
	}
	if s.Quantity != nil {
		c.Quantity = *s.Quantity
	}
	return c, true
}

// Snapshot is a line as a delivery carries it.
type Snapshot struct {
	Quantity int32
	Revision int64
}

// Line is the fold so far. The zero value is a line that no signal has touched.
type Line struct {
	Revision int64
	base     *Change  // the greatest set or remove
	adds     []Change // with keys greater than base's, ascending
	sum      int64    // of adds
}

// Fold takes one more signal, at whatever place of the order it belongs, and returns the line as it then stands.
func (l *Line) Fold(c Change) Snapshot {
	l.Revision++
	hidden := l.base != nil && c.Key.Compare(l.base.Key) < 0
	switch {
	case hidden:
	case c.Set:
		l.base = &c
		first, _ := slices.BinarySearchFunc(l.adds, c.Key, compareKey)
		for _, add := range l.adds[:first] {
			l.sum -= int64(add.Quantity)
		}
		l.adds = slices.Delete(l.adds, 0, first)
	default:
		at, _ := slices.BinarySearchFunc(l.adds, c.Key, compareKey)
		l.adds = slices.Insert(l.adds, at, c)
		l.sum += int64(c.Quantity)
		l.bound()
	}
	return l.Snapshot()
}

func compareKey(c Change, k Key) int { return c.Key.Compare(k) }

// bound merges the oldest two adds when there are too many. A merged add keeps at most the cap: the line shows no more.
func (l *Line) bound() {
	if len(l.adds) <= MaxAdds {
		return
	}
	merged := int64(l.adds[0].Quantity) + int64(l.adds[1].Quantity)
	kept := min(merged, MaxQuantity)
	l.sum -= merged - kept
	l.adds[1].Quantity = int32(kept)
	l.adds = slices.Delete(l.adds, 0, 1)
}

// Snapshot returns the line as it stands.
func (l *Line) Snapshot() Snapshot {
	total := l.sum
	if l.base != nil {
		total += int64(l.base.Quantity)
	}
	return Snapshot{Quantity: int32(min(total, MaxQuantity)), Revision: l.Revision}
}
