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

// reads is one reader of items (operation 2).
func (l *Load) reads(ctx context.Context, client int, random *rand.Rand) {
	for l.rest(ctx, around(random, 150*time.Millisecond)) {
		s, _ := l.two(random)
		if id, some := s.item(random); some {
			l.read(ctx, client, s, l.Edges[random.IntN(len(l.Edges))], id, s.credential(), history.Item)
		}
	}
}

// read asks an edge for an item.
func (l *Load) read(ctx context.Context, client int, s *shop, edge Place, id string, k key, op history.Op) reply {
	call := l.Recorder.Invoke(history.Event{Op: op, Client: client, Edge: edge.Name, Connection: s.connection, Key: k.id, Item: id})
	a := l.wire.do(ctx, request{method: http.MethodGet, url: edge.URL + "/v1/catalog/items/" + id, token: k.secret, within: 5 * time.Second})
	e := a.end(op)
	e.Item = id
	if a.answered() {
		var answer struct {
			Revision int64 `json:"refresh_revision"`
		}
		if err := json.Unmarshal(a.body, &answer); err != nil || answer.Revision == 0 {
			e.Kind, e.Error = history.Info, fmt.Sprintf("an item that cannot be read: %.200s", a.body)
		}
		e.Revision = answer.Revision
	}
	l.Recorder.End(call, e)
	return a
}
