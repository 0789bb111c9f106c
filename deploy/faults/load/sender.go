package load

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"storefront.internal/deploy/faults/history"
)

const (
	answerWithin = 8 * time.Second
	mostAttempts = 25
	keptBatches  = 12
)

// kept is a batch that a client may send once more.
type kept struct {
	shop *shop
	batch
}

// signals is one client: it asks for Decisions, sends batches until they are answered, and sends three in ten once more.
func (l *Load) signals(ctx context.Context, client int, random *rand.Rand, pause time.Duration) {
	var old []kept
	for l.rest(ctx, around(random, pause)) {
		s, other := l.two(random)
		edge := l.Edges[random.IntN(len(l.Edges))]
		if _, some := s.decide(random); !some || random.IntN(8) == 0 {
			l.recommend(ctx, client, s, edge, random)
		}
		if _, some := other.decide(random); !some {
			l.recommend(ctx, client, other, edge, random)
		}
		b := compose(s, other, random)
		if len(b.signals) == 0 {
			continue
		}
		l.made.Add(int64(len(b.signals)))
		l.deliver(ctx, client, s, b, random)
		old = append(old, kept{s, b})
		if len(old) > keptBatches {
			old = old[1:]
		}
		if random.IntN(10) < 3 {
			again := old[random.IntN(len(old))]
			l.deliver(ctx, client, again.shop, shuffled(again.batch, random), random)
		}
	}
}

// two picks a shop and another one.
func (l *Load) two(random *rand.Rand) (s, other *shop) {
	i := random.IntN(len(l.shops))
	return l.shops[i], l.shops[(i+1+random.IntN(len(l.shops)-1))%len(l.shops)]
}

// shuffled is a batch in another order; now and then only a part of it.
func shuffled(b batch, random *rand.Rand) batch {
	out := batch{append([]signal(nil), b.signals...), append([]history.Sent(nil), b.sent...)}
	random.Shuffle(len(out.signals), func(i, j int) {
		out.signals[i], out.signals[j] = out.signals[j], out.signals[i]
		out.sent[i], out.sent[j] = out.sent[j], out.sent[i]
	})
	if n := len(out.signals); random.IntN(3) == 0 {
		keep := 1 + random.IntN(n)
		out.signals, out.sent = out.signals[:keep], out.sent[:keep]
	}
	return out
}

// deliver sends a batch until it is answered, at the same or another edge. One client in ten gives up at its first failure, and
// nobody is patient for ever.
func (l *Load) deliver(ctx context.Context, client int, s *shop, b batch, random *rand.Rand) {
	patient := random.IntN(10) > 0
	edge := l.Edges[random.IntN(len(l.Edges))]
	back := 200 * time.Millisecond
	for attempt := 1; ; attempt++ {
		done := l.post(ctx, client, s, edge, b)
		if done || !patient || attempt == mostAttempts {
			return
		}
		if !wait(ctx, around(random, back)) {
			return
		}
		back = min(2*back, 3*time.Second)
		if random.IntN(2) == 0 {
			edge = l.Edges[random.IntN(len(l.Edges))]
		}
	}
}

// post makes one attempt and answers whether it is the last one that makes sense.
func (l *Load) post(ctx context.Context, client int, s *shop, edge Place, b batch) (done bool) {
	k := s.credential()
	call := l.Recorder.Invoke(history.Event{Op: history.Signals, Client: client, Edge: edge.Name, Connection: s.connection, Key: k.id, Signals: b.sent})
	l.sent.Add(int64(len(b.signals)))
	a := l.wire.do(ctx, request{method: http.MethodPost, url: edge.URL + "/v1/connections/" + s.connection + "/storefront-signals", token: k.secret,
		body: map[string]any{"signals": b.signals}, within: answerWithin})
	e := a.end(history.Signals)
	if a.answered() {
		var answer struct {
			Results []history.Result `json:"results"`
		}
		if err := json.Unmarshal(a.body, &answer); err != nil {
			e.Kind, e.Error = history.Info, fmt.Sprintf("an answer that cannot be read: %.200s", a.body)
		}
		e.Results = answer.Results
		l.told.Add(int64(len(answer.Results)))
	}
	l.Recorder.End(call, e)
	// A key that was revoked between two attempts is no reason to lose the batch: the page has a new one.
	return a.final() && a.status != http.StatusUnauthorized
}
