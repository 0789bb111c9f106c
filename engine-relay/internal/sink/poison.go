package sink

import (
	"context"
	"errors"

	"storefront.internal/shared/pg"
)

// errProbe rolls back a probe that succeeded.
var errProbe = errors.New("sink: probe")

// isolate stores a batch that PostgreSQL refused as a whole. Probes, which are transactions that are rolled
// back, halve the batch until each refused element is alone. Then one transaction stores the rest and parks
// the refused, so that a request keeps one row of audit. The rest is written like any batch: it may be
// refused for elements that are refused only together, and it is smaller, so this ends.
func (w *Writer) isolate(ctx context.Context, b batchTx, cause error) error {
	refused, err := w.findRefused(ctx, batchTx{decisions: b.decisions, signals: b.signals}, cause)
	if err != nil {
		return err
	}
	if len(refused) == 0 {
		return w.writeHalves(ctx, b, cause)
	}
	rest := b.without(refused)
	for element, state := range refused {
		rest.parked = append(rest.parked, element.park(ReasonRefused, state))
	}
	w.log.Error("sink: PostgreSQL refuses values, parking them", "parked", len(refused), "error", cause)
	return w.write(ctx, rest)
}

// element is a *pendingSignal or a *pendingDecision.
type element interface {
	park(reason, sqlState string) Parked
}

// findRefused returns the elements that are refused on their own, with the SQLSTATE. cause is the error of
// the whole batch, nil when it is not known yet. An error of another class ends the search.
func (w *Writer) findRefused(ctx context.Context, b batchTx, cause error) (map[element]string, error) {
	if cause == nil {
		cause = w.probe(ctx, b)
	}
	switch {
	case cause == nil:
		return nil, nil
	case pg.Class(cause) != pg.Poison:
		return nil, cause
	}
	if single := b.single(); single != nil {
		return map[element]string{single: pg.SQLState(cause)}, nil
	}
	found := make(map[element]string)
	for _, half := range b.halves() {
		part, err := w.findRefused(ctx, half, nil)
		if err != nil {
			return nil, err
		}
		for e, state := range part {
			found[e] = state
		}
	}
	return found, nil
}

func (w *Writer) probe(ctx context.Context, b batchTx) error {
	w.metrics.probed()
	err := w.store.InTx(ctx, func(tx Tx) error {
		if _, err := b.apply(ctx, tx); err != nil {
			return err
		}
		return errProbe
	})
	if errors.Is(err, errProbe) {
		return nil
	}
	return err
}

// writeHalves stores each half on its own, for elements that are refused only together. A batch that cannot
// be halved passed its probe, so its data is not at fault, and it is tried again.
func (w *Writer) writeHalves(ctx context.Context, b batchTx, cause error) error {
	halves := b.halves()
	if len(halves) == 0 {
		return cause
	}
	halves[0].parked, halves[0].repeated = b.parked, b.repeated
	halves[len(halves)-1].replay = b.replay
	rest := b.divide(halves)
	for _, half := range halves {
		if err := w.write(ctx, half); err != nil {
			return err
		}
	}
	if len(rest.messages) == 0 {
		return nil
	}
	return w.write(ctx, rest)
}

// single returns the only element of the batch, nil when there are more or none.
func (b batchTx) single() element {
	switch {
	case len(b.signals) == 1 && len(b.decisions) == 0:
		return b.signals[0]
	case len(b.signals) == 0 && len(b.decisions) == 1:
		return b.decisions[0]
	}
	return nil
}

func (b batchTx) halves() []batchTx {
	switch {
	case len(b.decisions) > 0 && len(b.signals) > 0:
		return []batchTx{{decisions: b.decisions}, {signals: b.signals}}
	case len(b.decisions) > 1:
		middle := len(b.decisions) / 2
		return []batchTx{{decisions: b.decisions[:middle]}, {decisions: b.decisions[middle:]}}
	case len(b.signals) > 1:
		middle := b.middle()
		return []batchTx{{signals: b.signals[:middle]}, {signals: b.signals[middle:]}}
	}
	return nil
}

// splittable reports whether the batch can be halved without splitting a request.
func (b batchTx) splittable() bool {
	return len(b.decisions) > 1 || len(b.decisions) > 0 && len(b.signals) > 0 ||
		len(b.signals) > 1 && b.signals[0].request != b.signals[len(b.signals)-1].request
}

// middle is where the signals are halved: between two requests if there is more than one, so that a request
// keeps one row of audit.
func (b batchTx) middle() int {
	half := len(b.signals) / 2
	for distance := range half + 1 {
		for _, at := range []int{half + distance, half - distance} {
			if at > 0 && at < len(b.signals) && b.signals[at].request != b.signals[at-1].request {
				return at
			}
		}
	}
	return half
}

func (b batchTx) without(refused map[element]string) batchTx {
	rest := batchTx{parked: b.parked[:len(b.parked):len(b.parked)], repeated: b.repeated, replay: b.replay,
		messages: b.messages, claim: b.claim, again: b.again}
	for _, d := range b.decisions {
		if _, out := refused[d]; !out {
			rest.decisions = append(rest.decisions, d)
		}
	}
	for _, p := range b.signals {
		if _, out := refused[p]; !out {
			rest.signals = append(rest.signals, p)
		}
	}
	return rest
}
