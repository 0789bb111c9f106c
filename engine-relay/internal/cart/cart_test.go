package cart

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// act is a signal as the reference model reads it: text and plain numbers, nothing of the package.
type act struct {
	id                 string
	kind               string
	occurred, received int
	index, quantity    int
}

// reference is the contract's sentence written down: sort by the order in which the shopper acted, then play
// it.
func reference(acts []act) int {
	sorted := slices.Clone(acts)
	slices.SortFunc(sorted, func(a, b act) int {
		x := fmt.Sprintf("%09d %09d %03d %s", min(a.occurred, a.received), a.received, a.index, a.id)
		y := fmt.Sprintf("%09d %09d %03d %s", min(b.occurred, b.received), b.received, b.index, b.id)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	cart := 0
	for _, a := range sorted {
		switch a.kind {
		case "add":
			cart += a.quantity
		case "set":
			cart = a.quantity
		case "remove":
			cart = 0
		}
		if cart > 1_000_000 {
			cart = 1_000_000
		}
	}
	return cart
}

func (a act) change() Change {
	s := signal.Signal{ID: ident.SignalID(a.id), OccurredAt: time.UnixMicro(int64(a.occurred))}
	quantity := int32(a.quantity)
	switch a.kind {
	case "add":
		s.Type = signal.AddToCart
		if a.quantity != 1 {
			s.Quantity = &quantity
		}
	case "set":
		s.Type, s.Quantity = signal.UpdateQuantity, &quantity
	case "remove":
		s.Type = signal.RemoveFromCart
	}
	c, _ := ChangeOf(&s, time.UnixMicro(int64(a.received)), a.index)
	return c
}

func acts(t *rapid.T) []act {
	quantity := rapid.OneOf(rapid.IntRange(1, 9), rapid.IntRange(1, 1_000_000))
	n := rapid.IntRange(1, 30).Draw(t, "n")
	out := make([]act, n)
	for i := range out {
		out[i] = act{
			id:       fmt.Sprintf("sig_%02d", i),
			kind:     rapid.SampledFrom([]string{"add", "add", "set", "remove"}).Draw(t, "kind"),
			occurred: rapid.IntRange(0, 12).Draw(t, "occurred"),
			received: rapid.IntRange(5, 10).Draw(t, "received"),
			index:    rapid.IntRange(0, 2).Draw(t, "index"),
			quantity: quantity.Draw(t, "quantity"),
		}
	}
	return out
}

func TestAnyOrderGivesTheReferenceCart(t *testing.T) { rapid.Check(t, anyOrder) }

func anyOrder(t *rapid.T) {
	all := acts(t)
	want := reference(all)
	shuffled := rapid.Permutation(all).Draw(t, "arrival")
	line := &Line{}
	seen := map[string]bool{}
	for i, a := range append(shuffled, shuffled[:len(shuffled)/2]...) {
		if seen[a.id] {
			continue // the ledger's work
		}
		seen[a.id] = true
		snapshot := line.Fold(a.change())
		if part := reference(shuffled[:i+1]); int(snapshot.Quantity) != part ||
			snapshot.Revision != int64(i+1) {
			t.Fatalf("after %d signals: %+v, want quantity %d", i+1, snapshot, part)
		}
		packed, err := ParseLine(line.Revision, line.AppendState(nil))
		if err != nil {
			t.Fatal(err)
		}
		line = packed
	}
	if got := line.Snapshot(); int(got.Quantity) != want {
		t.Fatalf("cart is %d, want %d", got.Quantity, want)
	}
}

func TestChangeOf(t *testing.T) {
	five := int32(5)
	f := func(kind signal.Type, quantity *int32, cart, set bool, want int32) {
		t.Helper()
		c, ok := ChangeOf(&signal.Signal{Type: kind, Quantity: quantity}, time.UnixMicro(1), 0)
		if ok != cart || c.Set != set || c.Quantity != want {
			t.Errorf("%s %v: %+v, %v", kind, quantity, c, ok)
		}
		if cart != kind.Cart() {
			t.Errorf("%s: the fold and the vocabulary disagree", kind)
		}
	}
	f(signal.AddToCart, nil, true, false, 1)
	f(signal.AddToCart, &five, true, false, 5)
	f(signal.UpdateQuantity, &five, true, true, 5)
	f(signal.RemoveFromCart, nil, true, true, 0)
	f(signal.RemoveFromCart, &five, true, true, 0)
	f(signal.Purchase, &five, false, false, 0)
	f(signal.Impression, nil, false, false, 0)
	f(signal.Click, nil, false, false, 0)
	f(signal.Dismiss, nil, false, false, 0)
}

func TestAShoppersClockAheadCountsAsArrival(t *testing.T) {
	ahead := KeyOf(time.UnixMicro(900), time.UnixMicro(100), 0, "sig_a")
	later := KeyOf(time.UnixMicro(150), time.UnixMicro(200), 0, "sig_b")
	if ahead.Compare(later) >= 0 {
		t.Error("a signal that says it comes from the future sorts behind one that arrived later")
	}
}

func TestAddsAreBounded(t *testing.T) {
	line := &Line{}
	const extra = 1000
	for i := range MaxAdds + extra {
		line.Fold(Change{Key: Key{At: int64(i), Signal: "sig_x"}, Quantity: 2})
	}
	if len(line.adds) != MaxAdds {
		t.Errorf("%d adds are kept", len(line.adds))
	}
	if got := line.Snapshot().Quantity; got != 2*(MaxAdds+extra) {
		t.Errorf("the merge lost quantity: %d", got)
	}
	set := line.Fold(Change{Set: true, Key: Key{At: MaxAdds + extra - 11, Signal: "sig_y"}, Quantity: 1})
	if set.Quantity != 1+2*10 {
		t.Errorf("a late set among the newest adds gives %d", set.Quantity)
	}
}

func TestMergedAddsStayCapped(t *testing.T) {
	line := &Line{}
	for i := range MaxAdds + 3000 {
		line.Fold(Change{Key: Key{At: int64(i)}, Quantity: MaxQuantity})
	}
	if got := line.Snapshot().Quantity; got != MaxQuantity {
		t.Errorf("quantity %d", got)
	}
	if _, err := ParseLine(1, line.AppendState(nil)); err != nil {
		t.Error(err)
	}
}

func TestParseLineRejectsForeignBytes(t *testing.T) {
	good := (&Line{base: &Change{Set: true, Key: Key{Signal: "sig_a"}},
		adds: []Change{{Quantity: 3}}}).AppendState(
		nil,
	)
	for n := 1; n < len(good); n++ {
		if _, err := ParseLine(1, good[:n]); err == nil {
			t.Errorf("%d of %d bytes are taken", n, len(good))
		}
	}
	for _, b := range [][]byte{{2, 0, 0}, {1, 2, 0}, append(good, 0), {1, 0, 255, 255, 255, 255, 15}} {
		if _, err := ParseLine(1, b); err == nil {
			t.Errorf("%v is taken", b)
		}
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add(
		(&Line{base: &Change{Set: true, Key: Key{Signal: "sig_a"}},
			adds: []Change{{Quantity: 3}}}).AppendState(
			nil,
		),
	)
	f.Fuzz(func(t *testing.T, b []byte) {
		if line, err := ParseLine(1, b); err == nil {
			line.Fold(Change{Quantity: 1})
		}
	})
}

func BenchmarkFold(b *testing.B) {
	line := &Line{}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		line.Fold(Change{Key: Key{At: int64(i), Signal: "sig_x"}, Quantity: 1})
		if i%8 == 7 {
			line.Fold(Change{Set: true, Key: Key{At: int64(i), Signal: "sig_y"}})
		}
	}
}

// FuzzFold is TestAnyOrderGivesTheReferenceCart with what the fuzzer draws.
func FuzzFold(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("set, and then an add that arrived before it"))
	f.Fuzz(rapid.MakeFuzz(anyOrder))
}

func TestALineOfTheFormerBoundShrinks(t *testing.T) {
	former := &Line{}
	for i := range maxStoredAdds {
		former.adds = append(former.adds, Change{Key: Key{At: int64(i), Signal: "sig_x"}, Quantity: 2})
	}
	line, err := ParseLine(maxStoredAdds, former.AppendState(nil))
	if err != nil {
		t.Fatal(err)
	}
	got := line.Fold(Change{Key: Key{At: maxStoredAdds, Signal: "sig_y"}, Quantity: 1})
	if want := (Snapshot{Quantity: 2*maxStoredAdds + 1, Revision: maxStoredAdds + 1}); got != want ||
		len(line.adds) != MaxAdds {
		t.Errorf("%+v with %d adds, want %+v with %d", got, len(line.adds), want, MaxAdds)
	}
}

// TestAHostileLineStaysSmall bounds what one more signal of a line writes.
func TestAHostileLineStaysSmall(t *testing.T) {
	line := &Line{}
	for i := range 10_000 {
		at := 1_800_000_000_000_000 + int64(i)
		line.Fold(Change{Key: Key{At: at, Signal: "sig_0123456789012345678901234567890"},
			Quantity: 1})
	}
	if n := len(line.AppendState(nil)); n > 16<<10 {
		t.Errorf("its state has %d bytes", n)
	}
}
