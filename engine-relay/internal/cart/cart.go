// Package cart owns the fold of cart signals into lines: one line per Decision, item and variant. The result
// does not depend on the order in which signals arrive. It is pure arithmetic; the caller folds each signal
// once, by the ledger.
//
// The order in which the shopper acted (Key) determines the line. The last signal that sets or removes hides
// all before it, and the adds after it count on top. So a line needs no history: the set or remove with the
// greatest key and the adds with greater keys are enough to fold any signal at any time, including late ones.
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
	// MaxAdds bounds the adds of a line. Beyond it the oldest two become one, with the key of the later. Only
	// a late set or remove whose key is between these two would give another result. The state of a line is
	// written with each of its signals, so the bound also limits what a hostile line costs.
	MaxAdds = 256
	// maxStoredAdds is the bound of earlier releases, whose lines are read and shrink with the next add.
	maxStoredAdds = 4096
)

// Key orders signals by when the shopper acted: the instant (that of the arrival, when the shopper's clock
// was ahead of it), then the arrival, the position in the request, the id. Instants are Unix microseconds.
type Key struct {
	At       int64
	Received int64
	Index    int
	Signal   ident.SignalID
}

// KeyOf returns the key of a signal.
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

// ChangeOf returns what a cart signal does. Without a quantity it adds 1; a remove sets 0. The second result
// is false for a type that changes no cart.
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

// Snapshot is the part of a line that a delivery has.
type Snapshot struct {
	Quantity int32
	Revision int64
}

// Line is the state of the fold. The zero value is a line without signals.
type Line struct {
	Revision int64
	base     *Change  // the greatest set or remove
	adds     []Change // with keys greater than base's, ascending
	sum      int64    // of adds
}

// Fold folds one more signal, wherever its key is in the order, and returns the new line.
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

// bound merges the oldest adds when there are too many. MaxQuantity caps a merged add, as it caps the
// line.
func (l *Line) bound() {
	surplus := len(l.adds) - MaxAdds
	if surplus <= 0 {
		return
	}
	for i := range surplus {
		merged := int64(l.adds[i].Quantity) + int64(l.adds[i+1].Quantity)
		kept := min(merged, MaxQuantity)
		l.sum -= merged - kept
		l.adds[i+1].Quantity = int32(kept)
	}
	l.adds = slices.Delete(l.adds, 0, surplus)
}

// Snapshot returns the line's quantity and revision.
func (l *Line) Snapshot() Snapshot {
	total := l.sum
	if l.base != nil {
		total += int64(l.base.Quantity)
	}
	return Snapshot{Quantity: int32(min(total, MaxQuantity)), Revision: l.Revision}
}
