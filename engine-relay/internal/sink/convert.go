package sink

import (
	"storefront.internal/engine-relay/internal/cart"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/ident"
)

func toSignals(newSignals []*pendingSignal, served map[DecisionKey]Served) []Signal {
	out := make([]Signal, len(newSignals))
	for i, p := range newSignals {
		r := p.request.record
		out[i] = Signal{
			Signal: p.signal, ConnectionID: r.ConnectionID, StoreID: r.StoreID, RecordID: p.request.id,
			Index: p.index, ReceivedAt: r.ReceivedAt, Crawler: r.Audit.Crawler,
			ForeignItem: foreignItem(p.signal.ItemID, served, p.decision()),
		}
	}
	return out
}

// foreignItem reports whether the Decision lacks the item, nil while the Decision is not stored.
func foreignItem(item ident.ItemID, served map[DecisionKey]Served, key DecisionKey) *bool {
	held, known := served[key]
	if item != "" && !known {
		return nil
	}
	_, isItem := held.Items[item]
	mark := item != "" && !isItem
	return &mark
}

// toAudits returns one audit per request, with the clients of its new signals.
func toAudits(newSignals []*pendingSignal) []Audit {
	var out []Audit
	at := make(map[*request]int)
	for _, p := range newSignals {
		i, known := at[p.request]
		if !known {
			i = len(out)
			at[p.request] = i
			r := p.request.record
			out = append(out, Audit{
				Audit: r.Audit, ConnectionID: r.ConnectionID,
				RecordID: p.request.id, ReceivedAt: r.ReceivedAt,
			})
		}
		if p.signal.Client != nil {
			out[i].Clients = appendClient(out[i].Clients, p)
		}
	}
	for i := range out {
		if out[i].Clients != nil {
			out[i].Clients = append(out[i].Clients, '}')
		}
	}
	return out
}

func appendClient(dst []byte, p *pendingSignal) []byte {
	if dst == nil {
		dst = append(dst, '{', '"')
	} else {
		dst = append(dst, ',', '"')
	}
	dst = append(dst, p.signal.ID...)
	dst = append(dst, '"', ':')
	return append(dst, p.signal.Client...)
}

func toDeliveries(
	newSignals []*pendingSignal, served map[DecisionKey]Served, snapshots map[*pendingSignal]cart.Snapshot,
) []deliveries.Entry {
	out := make([]deliveries.Entry, len(newSignals))
	bodies := make([]byte, 0, 512*len(newSignals))
	for i, p := range newSignals {
		held, known := served[p.decision()]
		var line *cart.Snapshot
		if s, folded := snapshots[p]; folded {
			line = &s
		}
		start := len(bodies)
		bodies = appendInteraction(bodies, p, line, held.EngineIDs)
		out[i] = deliveries.Entry{
			Kind: deliveries.Interaction, Traceparent: p.request.message.Trace,
			ConnectionID: p.request.record.ConnectionID, LaneKey: string(p.signal.DecisionID),
			ID: string(p.signal.ID), Body: bodies[start:len(bodies):len(bodies)],
		}
		if !known {
			out[i].Awaits = string(p.signal.DecisionID)
		}
	}
	return out
}
