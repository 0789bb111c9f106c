package systemtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"storefront.internal/deploy/stack/client"
)

// interaction is what a test reads of a delivered interaction.
type interaction struct {
	SignalID     string          `json:"signal_id"`
	ConnectionID string          `json:"connection_id"`
	Type         string          `json:"type"`
	DecisionID   string          `json:"decision_id"`
	ItemID       string          `json:"item_id"`
	VariantID    string          `json:"variant_id"`
	EngineIDs    json.RawMessage `json:"engine_ids"`
	CartLine     *struct {
		ItemID    string `json:"item_id"`
		VariantID string `json:"variant_id"`
		Quantity  int    `json:"quantity"`
		Revision  int    `json:"revision"`
	} `json:"cart_line"`
}

type lineKey struct{ Decision, Item, Variant string }

type line struct{ Quantity, Revision int }

// view is what the engine has of one connection.
type view struct {
	created map[string]int // by signal id; the engine holds each once
	exists  int
	lines   map[lineKey]line // the greatest revision of each
	bodies  map[string][]byte
	seen    map[string]interaction
}

// engineView reads the engine's receipts and checks that the body of a signal is always the same.
func (x *deployment) engineView(t *testing.T, connection string) view {
	t.Helper()
	v := view{created: map[string]int{}, lines: map[lineKey]line{}, bodies: map[string][]byte{},
		seen: map[string]interaction{}}
	for _, r := range x.engine.Receipts(0) {
		var i interaction
		if err := json.Unmarshal(r.Interaction, &i); err != nil {
			t.Fatalf("the engine got %s: %v", r.Interaction, err)
		}
		if i.ConnectionID != connection {
			continue
		}
		switch r.Result {
		case "created":
			v.created[i.SignalID]++
		case "exists":
			v.exists++
		}
		if before, again := v.bodies[i.SignalID]; again && !bytes.Equal(before, r.Interaction) {
			t.Errorf("signal %s was delivered with two bodies:\n%s\n%s", i.SignalID, before, r.Interaction)
		}
		v.bodies[i.SignalID], v.seen[i.SignalID] = r.Interaction, i
		if c := i.CartLine; c != nil {
			key := lineKey{i.DecisionID, c.ItemID, c.VariantID}
			if v.lines[key].Revision < c.Revision {
				v.lines[key] = line{c.Quantity, c.Revision}
			}
		}
	}
	return v
}

// awaitDelivered waits until the engine has exactly these signals of the connection, each created once.
func (x *deployment) awaitDelivered(t *testing.T, s *storefront, ids []string, within time.Duration) view {
	t.Helper()
	var v view
	eventually(t, within, "delivery to the engine", func() error {
		v = x.engineView(t, s.ConnectionID)
		if len(v.created) < len(ids) {
			return fmt.Errorf("%d of %d signals are there", len(v.created), len(ids))
		}
		return nil
	})
	for _, id := range ids {
		if v.created[id] != 1 {
			t.Errorf("signal %s: created %d times", id, v.created[id])
		}
	}
	if len(v.created) != len(ids) {
		t.Errorf("the engine holds %d signals, want %d", len(v.created), len(ids))
	}
	if stored := x.number("SELECT count(*)::int FROM relay.signals WHERE connection_id = $1",
		s.ConnectionID); stored != len(ids) {
		t.Errorf("%d signals are stored, want %d", stored, len(ids))
	}
	return v
}

func idsOf(batch []client.Signal) []string {
	ids := make([]string, len(batch))
	for i, s := range batch {
		ids[i] = s.ID
	}
	return ids
}
