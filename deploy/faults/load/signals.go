package load

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"storefront.internal/deploy/faults/recording"
	"storefront.internal/deploy/load"
	"storefront.internal/deploy/stack/client"
)

const (
	meanBatch    = 20
	invalidEvery = 40 // signals; one is malformed, and another one names a foreign Decision
	maxAttempts  = 25
	keptBatches  = 12
)

// sentBatch is a batch that a client may send again.
type sentBatch struct {
	connection *connection
	signals    []recording.Signal
}

// sendSignals is a client that asks for Decisions, sends batches until they are answered, and sends three of
// ten again.
func (l *Load) sendSignals(ctx context.Context, client recording.Client, random *rand.Rand,
	pause time.Duration) {
	var old []sentBatch
	for l.pause(ctx, jitter(random, pause)) {
		c, other := l.twoConnections(random)
		edge := l.Edges[random.IntN(len(l.Edges))]
		if _, ok := c.decision(random); !ok || random.IntN(8) == 0 {
			l.recommend(ctx, client, c, edge, random)
		}
		if _, ok := other.decision(random); !ok {
			l.recommend(ctx, client, other, edge, random)
		}
		batch := compose(c, other, random)
		if len(batch) == 0 {
			continue
		}
		l.created.Add(int64(len(batch)))
		l.deliver(ctx, client, c, batch, random)
		old = append(old, sentBatch{c, batch})
		old = old[max(0, len(old)-keptBatches):]
		if random.IntN(10) < 3 {
			again := old[random.IntN(len(old))]
			l.deliver(ctx, client, again.connection, shuffled(again.signals, random), random)
		}
	}
}

func (l *Load) twoConnections(random *rand.Rand) (one, other *connection) {
	i, n := random.IntN(len(l.connections)), len(l.connections)
	return l.connections[i], l.connections[(i+1+random.IntN(n-1))%n]
}

// shuffled returns the signals in another order; in one of three cases only some of them.
func shuffled(batch []recording.Signal, random *rand.Rand) []recording.Signal {
	out := slices.Clone(batch)
	random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	if random.IntN(3) == 0 {
		out = out[:1+random.IntN(len(out))]
	}
	return out
}

// deliver sends a batch until it is answered, to the same or the other edge. One client of ten gives up after
// the first failure.
func (l *Load) deliver(ctx context.Context, client recording.Client, c *connection, batch []recording.Signal,
	random *rand.Rand) {
	attempts := maxAttempts
	if random.IntN(10) == 0 {
		attempts = 1
	}
	edge := l.Edges[random.IntN(len(l.Edges))]
	retry(ctx, random, attempts, func() bool {
		final := l.post(ctx, client, c, edge, batch)
		if random.IntN(2) == 0 {
			edge = l.Edges[random.IntN(len(l.Edges))]
		}
		return final
	})
}

// post makes one attempt and reports whether another one is useless.
func (l *Load) post(ctx context.Context, client recording.Client, c *connection, edge recording.Endpoint,
	batch []recording.Signal) bool {
	l.sent.Add(int64(len(batch)))
	e := client.RecordSignals(ctx, edge, c.id, c.currentKey(), batch)
	l.answered.Add(int64(len(e.Results)))
	// After 401 the page sends the batch again: its key was revoked between two attempts and it has a new
	// one.
	return recording.Final(e) && e.Status != http.StatusUnauthorized
}

// compose makes a batch of new signals of a connection. The other connection provides foreign Decisions.
func compose(c, other *connection, random *rand.Rand) []recording.Signal {
	var batch []recording.Signal
	for range 1 + random.IntN(2*meanBatch-1) {
		d, ok := c.decision(random)
		if !ok {
			return batch
		}
		s := recording.Signal{Signal: validSignal(d, random)}
		s.Visitor.VisitorID = c.visitor(s.ID)
		switch random.IntN(invalidEvery) {
		case 0:
			s.Malformed = true
			load.Violate(random, &s.Signal)
		case 1:
			s.ForeignDecision = true
			s.DecisionID = foreignDecision(s.DecisionID, other, random)
		}
		batch = append(batch, s)
	}
	return batch
}

func validSignal(d client.Decision, random *rand.Rand) client.Signal {
	s := load.ValidSignal(random, d, occurredAt(random))
	s.Visitor.SessionID = "ses_" + load.RandomName(random)
	if random.IntN(10) == 0 {
		s.Client = map[string]any{"page_url": "https://shop.example/p/" + s.ItemID,
			"timezone": "America/Argentina/Buenos_Aires"}
	}
	return s
}

// occurredAt is the time on a shopper's clock: mostly right, sometimes days late, sometimes hours ahead.
func occurredAt(random *rand.Rand) time.Time {
	at := time.Now().Add(-time.Duration(random.Int64N(int64(time.Minute))))
	switch random.IntN(60) {
	case 0, 1:
		at = at.Add(-time.Duration(random.Int64N(int64(72 * time.Hour))))
	case 2:
		at = at.Add(2 * time.Hour)
	}
	return at
}

// foreignDecision returns a well-formed Decision id that was not issued for the connection: that of another
// connection, or one with a changed byte.
func foreignDecision(own string, other *connection, random *rand.Rand) string {
	if random.IntN(2) == 0 {
		if d, ok := other.decision(random); ok {
			return d.ID
		}
	}
	b := []byte(own)
	at := len("dec_") + random.IntN(len(b)-len("dec_")-1) // the last letter has unused bits
	if b[at] == 'A' {
		b[at] = 'B'
	} else {
		b[at] = 'A'
	}
	return string(b)
}
