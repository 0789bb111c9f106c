package cart

import (
	"encoding/binary"
	"errors"

	"storefront.internal/shared/ident"
)

// stateVersion is the first byte of the packed form. A later form gets the next number, and this one stays
// readable.
const stateVersion = 1

// ErrState says that bytes are not a packed line, or one of a newer version.
var ErrState = errors.New("cart: not a packed line of a known version")

// AppendState appends what Fold needs besides the revision: the last set or remove, and the adds after it.
func (l *Line) AppendState(dst []byte) []byte {
	dst = append(dst, stateVersion)
	if l.base == nil {
		dst = append(dst, 0)
	} else {
		dst = appendChange(append(dst, 1), *l.base)
	}
	dst = binary.AppendUvarint(dst, uint64(len(l.adds)))
	for _, add := range l.adds {
		dst = appendChange(dst, add)
	}
	return dst
}

func appendChange(dst []byte, c Change) []byte {
	dst = binary.AppendVarint(dst, c.Key.At)
	dst = binary.AppendVarint(dst, c.Key.Received-c.Key.At) // small unless the signal came late
	dst = binary.AppendUvarint(dst, uint64(c.Key.Index))
	dst = binary.AppendUvarint(dst, uint64(len(c.Key.Signal)))
	dst = append(dst, c.Key.Signal...)
	return binary.AppendUvarint(dst, uint64(c.Quantity))
}

// ParseLine reads a line from its revision and the bytes of AppendState; no bytes are a line without signals.
func ParseLine(revision int64, state []byte) (*Line, error) {
	l := &Line{Revision: revision}
	if len(state) == 0 {
		return l, nil
	}
	if len(state) < 2 || state[0] != stateVersion || state[1] > 1 {
		return nil, ErrState
	}
	r := reader{rest: state[2:]}
	if state[1] == 1 {
		base := r.change(true)
		l.base = &base
	}
	n := r.uvarint()
	if n > maxStoredAdds {
		return nil, ErrState
	}
	l.adds = make([]Change, 0, n+1)
	for range n {
		add := r.change(false)
		l.adds = append(l.adds, add)
		l.sum += int64(add.Quantity)
	}
	if r.broken || len(r.rest) > 0 {
		return nil, ErrState
	}
	return l, nil
}

// reader reads a packed line from the front. broken is set when a value is missing.
type reader struct {
	rest   []byte
	broken bool
}

func (r *reader) change(set bool) Change {
	at := r.varint()
	received := at + r.varint()
	c := Change{Set: set, Key: Key{At: at, Received: received, Index: int(r.uvarint())}}
	c.Key.Signal = ident.SignalID(r.bytes(r.uvarint()))
	c.Quantity = int32(r.uvarint())
	return c
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	r.skip(n)
	return v
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	r.skip(n)
	return v
}

func (r *reader) skip(n int) {
	if n <= 0 {
		r.broken, r.rest = true, nil
		return
	}
	r.rest = r.rest[n:]
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.broken, r.rest = true, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}
