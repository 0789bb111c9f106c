package record

import (
	"context"
	"errors"

	"storefront.internal/shared/pg"
)

// errProbe ends a probe: the transaction went through and is undone.
var errProbe = errors.New("record: probe")

// isolate stores work that PostgreSQL refused as a whole. Probes (transactions that are undone) halve the work until
// each refused element stands alone; then one transaction stores the rest and parks those, so that a request's audit
// stays one row whatever is refused.
func (r *Recorder) isolate(ctx context.Context, w work, cause error) error {
	refused, err := r.search(ctx, work{decisions: w.decisions, entries: w.entries}, cause)
	if err != nil {
		return err
	}
	if len(refused) == 0 {
		return r.separate(ctx, w, cause)
	}
	rest := w.without(refused)
	for element, state := range refused {
		rest.parked = append(rest.parked, element.park(ReasonRefused, state))
	}
	r.log.Error("sink: PostgreSQL refuses values, parking them", "parked", len(refused), "error", cause)
	return r.transact(ctx, rest)
}

// element is what is parked alone: an *entry or a *decision.
type element interface {
	park(reason, sqlState string) Parked
}

// search returns the elements that are refused on their own, with the SQLSTATE. cause is why the work is refused, nil
// when that is not known yet. An error of another class ends it.
func (r *Recorder) search(ctx context.Context, w work, cause error) (map[element]string, error) {
	if cause == nil {
		cause = r.probe(ctx, w)
	}
	switch {
	case cause == nil:
		return nil, nil
	case pg.Class(cause) != pg.Poison:
		return nil, cause
	}
	if alone := w.alone(); alone != nil {
		return map[element]string{alone: pg.State(cause)}, nil
	}
	found := make(map[element]string)
	for _, half := range w.halves() {
		part, err := r.search(ctx, half, nil)
		if err != nil {
			return nil, err
		}
		for e, state := range part {
			found[e] = state
		}
	}
	return found, nil
}

func (r *Recorder) probe(ctx context.Context, w work) error {
	r.metrics.probed()
	err := r.store.InTx(ctx, func(tx Tx) error {
		if _, err := w.apply(ctx, tx); err != nil {
			return err
		}
		return errProbe
	})
	if errors.Is(err, errProbe) {
		return nil
	}
	return err
}

// separate is for what is refused together and not alone: each half is stored by itself. Work that cannot be halved
// was taken by its probe a moment ago; it is tried again, as nothing says that its data is at fault.
func (r *Recorder) separate(ctx context.Context, w work, cause error) error {
	halves := w.halves()
	if len(halves) == 0 {
		return cause
	}
	halves[0].parked, halves[0].repeated = w.parked, w.repeated
	for _, half := range halves {
		if err := r.record(ctx, half); err != nil {
			return err
		}
	}
	return nil
}

// alone returns the only element of the work, nil when it holds more or none.
func (w work) alone() element {
	switch {
	case len(w.entries) == 1 && len(w.decisions) == 0:
		return w.entries[0]
	case len(w.entries) == 0 && len(w.decisions) == 1:
		return w.decisions[0]
	}
	return nil
}

func (w work) halves() []work {
	switch {
	case len(w.decisions) > 0 && len(w.entries) > 0:
		return []work{{decisions: w.decisions}, {entries: w.entries}}
	case len(w.decisions) > 1:
		middle := len(w.decisions) / 2
		return []work{{decisions: w.decisions[:middle]}, {decisions: w.decisions[middle:]}}
	case len(w.entries) > 1:
		middle := w.middle()
		return []work{{entries: w.entries[:middle]}, {entries: w.entries[middle:]}}
	}
	return nil
}

// wide reports whether the work can be halved without halving a request.
func (w work) wide() bool {
	return len(w.decisions) > 1 || len(w.decisions) > 0 && len(w.entries) > 0 ||
		len(w.entries) > 1 && w.entries[0].request != w.entries[len(w.entries)-1].request
}

// middle is where the entries are halved: between two requests if there is more than one, so that the audit of a
// request that is stored in halves stays one row.
func (w work) middle() int {
	half := len(w.entries) / 2
	for distance := range half + 1 {
		for _, at := range []int{half + distance, half - distance} {
			if at > 0 && at < len(w.entries) && w.entries[at].request != w.entries[at-1].request {
				return at
			}
		}
	}
	return half
}

func (w work) without(refused map[element]string) work {
	rest := work{parked: w.parked[:len(w.parked):len(w.parked)], repeated: w.repeated}
	for _, d := range w.decisions {
		if _, out := refused[d]; !out {
			rest.decisions = append(rest.decisions, d)
		}
	}
	for _, e := range w.entries {
		if _, out := refused[e]; !out {
			rest.entries = append(rest.entries, e)
		}
	}
	return rest
}
