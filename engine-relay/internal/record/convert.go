package record

import (
	"storefront.internal/engine-relay/internal/cart"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/ident"
)

func toSignals(fresh []*entry, served map[DecisionKey]Served) []Signal {
	out := make([]Signal, len(fresh))
	for i, e := range fresh {
		r := e.request.record
		out[i] = Signal{Signal: e.signal, ConnectionID: r.ConnectionID, StoreID: r.StoreID, RecordID: e.request.id,
			Index: e.index, ReceivedAt: r.ReceivedAt, Crawler: r.Audit.Crawler, ForeignItem: foreign(e.signal.ItemID, served, e.decision())}
	}
	return out
}

// foreign says whether the Decision did not hold the item, nil when the Decision is not known yet.
func foreign(item ident.ItemID, served map[DecisionKey]Served, key DecisionKey) *bool {
	held, known := served[key]
	if item != "" && !known {
		return nil
	}
	_, isItem := held.Items[item]
	mark := item != "" && !isItem
	return &mark
}

// toAudits returns one audit per request, with the clients of its new signals.
func toAudits(fresh []*entry) []Audit {
	var out []Audit
	at := make(map[*request]int)
	for _, e := range fresh {
		i, known := at[e.request]
		if !known {
			i = len(out)
			at[e.request] = i
			r := e.request.record
			out = append(out, Audit{Audit: r.Audit, ConnectionID: r.ConnectionID, RecordID: e.request.id, ReceivedAt: r.ReceivedAt})
		}
		if e.signal.Client != nil {
			out[i].Clients = appendClient(out[i].Clients, e)
		}
	}
	for i := range out {
		if out[i].Clients != nil {
			out[i].Clients = append(out[i].Clients, '}')
		}
	}
	return out
}

func appendClient(dst []byte, e *entry) []byte {
	if dst == nil {
		dst = append(dst, '{', '"')
	} else {
		dst = append(dst, ',', '"')
	}
	dst = append(dst, e.signal.ID...)
	dst = append(dst, '"', ':')
	return append(dst, e.signal.Client...)
}

func toDeliveries(fresh []*entry, served map[DecisionKey]Served, snapshots map[*entry]cart.Snapshot) []deliveries.Entry {
	out := make([]deliveries.Entry, len(fresh))
	bodies := make([]byte, 0, 512*len(fresh))
	for i, e := range fresh {
		held, known := served[e.decision()]
		var line *cart.Snapshot
		if s, folded := snapshots[e]; folded {
			line = &s
		}
		start := len(bodies)
		bodies = appendInteraction(bodies, e, line, held.EngineIDs)
		out[i] = deliveries.Entry{Kind: deliveries.Interaction, Traceparent: e.request.message.Trace, ConnectionID: e.request.record.ConnectionID,
			LaneKey: string(e.signal.DecisionID), ID: string(e.signal.ID), Body: bodies[start:len(bodies):len(bodies)]}
		if !known {
			out[i].Awaits = string(e.signal.DecisionID)
		}
	}
	return out
}
