package record

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"

	"storefront.internal/engine-relay/internal/cart"
	"storefront.internal/shared/signal"
)

// outcome counts what one transaction did.
type outcome struct {
	stored, deduplicated, parked int // signals; a whole parked record counts as one
	decisions, repeatedDecisions int
}

// apply does the work inside the transaction, in the order of Tx.
func (w *work) apply(ctx context.Context, tx Tx) (outcome, error) {
	out := outcome{parked: len(w.parked)}
	if err := w.forget(ctx, tx); err != nil {
		return out, err
	}
	if err := w.saveDecisions(ctx, tx, &out); err != nil {
		return out, err
	}
	fresh, err := w.enter(ctx, tx)
	if err != nil {
		return out, err
	}
	out.stored = len(fresh)
	out.deduplicated = len(w.entries) - len(fresh) + w.repeated
	if len(fresh) > 0 {
		if err := save(ctx, tx, fresh); err != nil {
			return out, err
		}
	}
	if len(w.parked) > 0 {
		return out, tx.Park(ctx, w.parked)
	}
	return out, nil
}

// save stores signals that the ledger reported new.
func save(ctx context.Context, tx Tx, fresh []*entry) error {
	served, err := tx.Served(ctx, decisionKeys(fresh))
	if err != nil {
		return err
	}
	if err := tx.SaveSignals(ctx, toSignals(fresh, served)); err != nil {
		return err
	}
	if err := tx.SaveAudits(ctx, toAudits(fresh)); err != nil {
		return err
	}
	snapshots, err := fold(ctx, tx, fresh)
	if err != nil {
		return err
	}
	return tx.Enqueue(ctx, toDeliveries(fresh, served, snapshots))
}

func (w *work) saveDecisions(ctx context.Context, tx Tx, out *outcome) error {
	if len(w.decisions) == 0 {
		return nil
	}
	all := make([]*signal.Decision, len(w.decisions))
	for i, d := range w.decisions {
		all[i] = d.served
	}
	slices.SortFunc(all, func(a, b *signal.Decision) int {
		return cmp.Or(strings.Compare(string(a.ConnectionID), string(b.ConnectionID)),
			strings.Compare(string(a.DecisionID), string(b.DecisionID)))
	})
	saved, err := tx.SaveDecisions(ctx, all)
	out.decisions, out.repeatedDecisions = saved, len(all)-saved
	return err
}

// enter returns the entries that the ledger had not, in the order of arrival.
func (w *work) enter(ctx context.Context, tx Tx) ([]*entry, error) {
	if len(w.entries) == 0 {
		return nil, nil
	}
	keys := make([]LedgerKey, len(w.entries))
	for i, e := range w.entries {
		keys[i] = LedgerKey{ConnectionID: e.request.record.ConnectionID, Digest: e.digest}
	}
	slices.SortFunc(keys, func(a, b LedgerKey) int {
		return cmp.Or(strings.Compare(string(a.ConnectionID), string(b.ConnectionID)), bytes.Compare(a.Digest[:], b.Digest[:]))
	})
	entered, err := tx.Enter(ctx, keys)
	if err != nil {
		return nil, err
	}
	fresh := make([]*entry, 0, len(entered))
	for _, e := range w.entries {
		if _, isNew := entered[e.digest]; isNew {
			fresh = append(fresh, e)
		}
	}
	return fresh, nil
}

// fold takes the cart signals into their lines and returns, for each of them, the line as it then stood.
func fold(ctx context.Context, tx Tx, fresh []*entry) (map[*entry]cart.Snapshot, error) {
	at := make(map[LineKey]int)
	var keys []LineKey
	for _, e := range fresh {
		if !e.signal.Type.Cart() {
			continue
		}
		key := e.line()
		if _, known := at[key]; !known {
			at[key] = 0
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	slices.SortFunc(keys, LineKey.Compare)
	lines, err := tx.Lines(ctx, keys)
	if err != nil {
		return nil, err
	}
	for i, key := range keys {
		at[key] = i
	}
	snapshots := make(map[*entry]cart.Snapshot)
	for _, e := range fresh {
		if change, changes := cart.ChangeOf(e.signal, e.request.record.ReceivedAt, e.index); changes {
			snapshots[e] = lines[at[e.line()]].Fold(change)
		}
	}
	return snapshots, tx.SaveLines(ctx, keys, lines)
}

func (e *entry) line() LineKey {
	return LineKey{ConnectionID: e.request.record.ConnectionID, DecisionID: e.signal.DecisionID, ItemID: e.signal.ItemID,
		VariantID: e.signal.VariantID}
}

// Compare orders keys bytewise, as their table does.
func (k LineKey) Compare(other LineKey) int {
	return cmp.Or(strings.Compare(string(k.ConnectionID), string(other.ConnectionID)),
		strings.Compare(string(k.DecisionID), string(other.DecisionID)),
		strings.Compare(string(k.ItemID), string(other.ItemID)),
		strings.Compare(string(k.VariantID), string(other.VariantID)))
}

func (e *entry) decision() DecisionKey {
	return DecisionKey{ConnectionID: e.request.record.ConnectionID, DecisionID: e.signal.DecisionID}
}

func decisionKeys(fresh []*entry) []DecisionKey {
	seen := make(map[DecisionKey]struct{}, len(fresh))
	var keys []DecisionKey
	for _, e := range fresh {
		key := e.decision()
		if _, again := seen[key]; !again {
			seen[key] = struct{}{}
			keys = append(keys, key)
		}
	}
	return keys
}
