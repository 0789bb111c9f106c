package load

import (
	"context"
	"math/rand/v2"
	"time"

	"storefront.internal/deploy/faults/history"
)

const freshClient = 800

// Fresh sends one fresh signal of a shop to an edge until it is taken, and answers where to look for it. Its Decision is the shop's
// first: one that was served while Kafka was away may never be recorded, and a signal of it waits for its row.
func (l *Load) Fresh(ctx context.Context, edge int) (connection, id string, ok bool) {
	random := rand.New(rand.NewPCG(l.Seed, rand.Uint64())) //nolint:gosec // a name
	s := l.shops[random.IntN(len(l.shops))]
	d := s.first
	one := signal{ID: "sig_" + name(random), Type: "dismiss", Decision: d.id, Item: d.items[0].Item, OccurredAt: time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")}
	canary := history.Canary(s.connection, one.ID)
	one.Visitor = map[string]any{"visitor_id": "vis_" + canary}
	b := batch{[]signal{one}, []history.Sent{{ID: one.ID, Type: one.Type, Decision: one.Decision, Item: one.Item, OccurredAt: one.OccurredAt, Canary: canary}}}
	for ctx.Err() == nil {
		if l.post(ctx, freshClient+edge, s, l.Edges[edge], b) {
			return s.connection, one.ID, true
		}
		wait(ctx, 200*time.Millisecond)
	}
	return "", "", false
}

// Victim is a connection for rude clients to pester, with its key and a Decision.
type Victim struct{ Connection, Key, KeyID, Decision, Item string }

// Victim picks one.
func (l *Load) Victim(random *rand.Rand) Victim {
	s := l.shops[random.IntN(len(l.shops))]
	k := s.credential()
	v := Victim{Connection: s.connection, Key: k.secret, KeyID: k.id}
	if d, some := s.decide(random); some {
		v.Decision, v.Item = d.id, d.items[0].Item
	}
	return v
}
