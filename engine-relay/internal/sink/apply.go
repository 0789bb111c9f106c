package sink

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
	foreignItems                 int // stored signals whose Decision is known and lacks the item
}

// apply is the body of the transaction. It calls the methods of Tx in their order, and changes nothing
// outside of tx.
func (b *batchTx) apply(ctx context.Context, tx Tx) (outcome, error) {
	out := outcome{parked: len(b.parked)}
	b, err := b.applyErasures(ctx, tx)
	if err != nil {
		return out, err
	}
	if err := b.saveDecisions(ctx, tx, &out); err != nil {
		return out, err
	}
	newSignals, err := b.insertLedger(ctx, tx)
	if err != nil {
		return out, err
	}
	out.stored = len(newSignals)
	out.deduplicated = len(b.signals) - len(newSignals) + b.repeated
	if len(newSignals) > 0 {
		if out.foreignItems, err = save(ctx, tx, newSignals); err != nil {
			return out, err
		}
	}
	if err := b.savePark(ctx, tx); err != nil {
		return out, err
	}
	return out, b.markStored(ctx, tx)
}

// save stores signals that were new to the ledger, and returns how many have a foreign item.
func save(ctx context.Context, tx Tx, newSignals []*pendingSignal) (foreignItems int, err error) {
	served, err := tx.Served(ctx, decisionKeys(newSignals))
	if err != nil {
		return 0, err
	}
	signals := toSignals(newSignals, served)
	for i := range signals {
		if foreign := signals[i].ForeignItem; foreign != nil && *foreign {
			foreignItems++
		}
	}
	if err := tx.SaveSignals(ctx, signals); err != nil {
		return 0, err
	}
	if err := tx.SaveAudits(ctx, toAudits(newSignals)); err != nil {
		return 0, err
	}
	snapshots, err := fold(ctx, tx, newSignals)
	if err != nil {
		return 0, err
	}
	return foreignItems, tx.Enqueue(ctx, toDeliveries(newSignals, served, snapshots))
}

func (b *batchTx) saveDecisions(ctx context.Context, tx Tx, out *outcome) error {
	if len(b.decisions) == 0 {
		return nil
	}
	all := make([]*signal.Decision, len(b.decisions))
	for i, d := range b.decisions {
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

// insertLedger returns the signals that were new to the ledger, in the order of arrival.
func (b *batchTx) insertLedger(ctx context.Context, tx Tx) ([]*pendingSignal, error) {
	if len(b.signals) == 0 {
		return nil, nil
	}
	keys := make([]LedgerKey, len(b.signals))
	for i, p := range b.signals {
		keys[i] = LedgerKey{ConnectionID: p.request.record.ConnectionID, Digest: p.digest}
	}
	slices.SortFunc(keys, func(a, b LedgerKey) int {
		return cmp.Or(strings.Compare(string(a.ConnectionID), string(b.ConnectionID)),
			bytes.Compare(a.Digest[:], b.Digest[:]))
	})
	entered, err := tx.InsertLedger(ctx, keys)
	if err != nil {
		return nil, err
	}
	newSignals := make([]*pendingSignal, 0, len(entered))
	for _, p := range b.signals {
		if _, isNew := entered[p.digest]; isNew {
			newSignals = append(newSignals, p)
		}
	}
	return newSignals, nil
}

// fold folds the cart signals into their lines and returns, for each of them, the line after it.
func fold(ctx context.Context, tx Tx, newSignals []*pendingSignal) (map[*pendingSignal]cart.Snapshot, error) {
	at := make(map[LineKey]int)
	var keys []LineKey
	for _, p := range newSignals {
		if !p.signal.Type.Cart() {
			continue
		}
		key := p.line()
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
	snapshots := make(map[*pendingSignal]cart.Snapshot)
	for _, p := range newSignals {
		if change, changes := cart.ChangeOf(p.signal, p.request.record.ReceivedAt, p.index); changes {
			snapshots[p] = lines[at[p.line()]].Fold(change)
		}
	}
	return snapshots, tx.SaveLines(ctx, keys, lines)
}

func (p *pendingSignal) line() LineKey {
	return LineKey{
		ConnectionID: p.request.record.ConnectionID, DecisionID: p.signal.DecisionID,
		ItemID: p.signal.ItemID, VariantID: p.signal.VariantID,
	}
}

// Compare orders keys bytewise, as their table does.
func (k LineKey) Compare(other LineKey) int {
	return cmp.Or(strings.Compare(string(k.ConnectionID), string(other.ConnectionID)),
		strings.Compare(string(k.DecisionID), string(other.DecisionID)),
		strings.Compare(string(k.ItemID), string(other.ItemID)),
		strings.Compare(string(k.VariantID), string(other.VariantID)))
}

func (p *pendingSignal) decision() DecisionKey {
	return DecisionKey{ConnectionID: p.request.record.ConnectionID, DecisionID: p.signal.DecisionID}
}

func decisionKeys(newSignals []*pendingSignal) []DecisionKey {
	seen := make(map[DecisionKey]struct{}, len(newSignals))
	var keys []DecisionKey
	for _, p := range newSignals {
		key := p.decision()
		if _, again := seen[key]; !again {
			seen[key] = struct{}{}
			keys = append(keys, key)
		}
	}
	return keys
}
