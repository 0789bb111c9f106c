// Package signaljson owns reading the body of recordStorefrontSignals: strict JSON, in one pass and without
// copies.
//
// The Decoder checks what concerns the body as a whole: grammar, UTF-8, nesting, names given twice in any
// object, and the number of elements. It notes where the known members of each element are. It does not check
// the elements; package signalrules does.
package signaljson

import (
	"fmt"
	"unicode/utf8"
	"unsafe"

	"storefront.internal/shared/fault"
)

// MaxSignals is the greatest number of signals of a batch.
const MaxSignals = 50

// Element is one entry of signals: what it is, and where its known members are, those of its objects
// included.
type Element struct {
	self    Value
	members [memberCount]Value
}

// IsObject reports whether the element is an object.
func (e *Element) IsObject() bool { return e.self.Kind == Object }

// Member returns the value of a known member; its kind is Absent when the element has none.
func (e *Element) Member(m Member) *Value { return &e.members[m] }

// Decoder reads one body at a time. The zero value is ready; it is large, so keep it in a pool.
type Decoder struct {
	body  []byte // the caller's, not kept beyond Reset
	text  string // the same bytes
	pos   int
	depth int
	path  [maxDepth + 2]pathStep
	names []string // names of the unknown members of the open objects

	members  [memberCount]Value // of the body
	elements [MaxSignals]Element
	count    int   // of elements; those beyond MaxSignals are counted only
	ignored  Value // the last value of no interest
	failure  failure
}

// Count returns the number of elements after Decode.
func (d *Decoder) Count() int { return d.count }

// Element returns the i-th element.
func (d *Decoder) Element(i int) *Element { return &d.elements[i] }

// keptNames is how many names an idle Decoder keeps room for.
const keptNames = 256

// Reset forgets the body.
func (d *Decoder) Reset() {
	clear(d.names[:cap(d.names)])
	names := d.names[:0]
	if cap(names) > keptNames {
		names = nil
	}
	clear(d.elements[:min(d.count, MaxSignals)])
	clear(d.members[:])
	d.body, d.text, d.pos, d.depth, d.names, d.count, d.failure = nil, "", 0, 0, names, 0, failure{}
}

// Decode reads a body of {"signals": [...]}. The body must not change while anything is used that was read of
// it. An error concerns the body as a whole. The grammar is checked before the number of signals: a body of
// more than MaxSignals elements is signal_batch_limit_exceeded only when it is strict JSON, whatever its
// elements are.
func (d *Decoder) Decode(sent []byte) *fault.Error {
	v := Value{}
	if err := d.decode(sent, &v, body, &d.members); err != nil {
		return err
	}
	list := &d.members[signals]
	switch {
	case v.Kind != Object:
		return invalidBody(wrongType, "")
	case !list.Present():
		return invalidBody(missingSignals, "/signals")
	case list.Kind != Array:
		return invalidBody(wrongType, "/signals")
	case d.count == 0:
		return invalidBody(emptySignals, "/signals")
	case d.count > MaxSignals:
		err := fault.New(fault.SignalBatchLimitExceeded,
			fmt.Sprintf("A batch holds at most %d signals.", MaxSignals))
		err.Extra = map[string]any{"max_signals_per_batch": MaxSignals, "actual_signals": d.count}
		return err
	}
	return nil
}

// DecodeElement reads a body that is one element. The Decoder has to be new.
func (d *Decoder) DecodeElement(sent []byte) (*Element, *fault.Error) {
	e := &d.elements[0]
	d.count = 1
	if err := d.decode(sent, &e.self, element, &e.members); err != nil {
		return nil, err
	}
	if e.self.Kind != Object {
		return nil, invalidBody(wrongType, "")
	}
	return e, nil
}

// decode reads the whole text, which is an object of the kind, or another value.
func (d *Decoder) decode(sent []byte, v *Value, object Member, members *[memberCount]Value) *fault.Error {
	d.body, d.text = sent, unsafe.String(unsafe.SliceData(sent), len(sent))
	if !utf8.Valid(sent) {
		return invalidBody(badUTF8, "")
	}
	ok := false
	if d.next() == '{' {
		ok = d.readObject(v, object, members)
	} else {
		ok = d.readValue(v, unknown, nil)
	}
	if d.skipSpace(); ok && d.pos != len(d.body) {
		ok = d.fail(trailingBytes)
	}
	if !ok {
		return d.problem()
	}
	return nil
}
