package overload

import (
	"encoding/json"
	"testing"
)

// FuzzPriorityOfBatch: a sound batch has the priority of its highest signal, and no body makes it panic.
func FuzzPriorityOfBatch(f *testing.F) {
	f.Add([]byte(`{"signals":[{"type":"impression"},{"type":"purchase"}]}`))
	f.Add([]byte(`{"signals":[{"type" : "click"}]}`))
	f.Add([]byte(`{"signals":[{"type":"impression","client":{"page_url":"\"type\":\"purchase\""}}]}`))
	f.Add([]byte(`"type":`))
	f.Fuzz(func(t *testing.T, body []byte) {
		priority := PriorityOfBatch(body)
		var batch struct {
			Signals []struct {
				Type string `json:"type"`
			} `json:"signals"`
		}
		if json.Unmarshal(body, &batch) != nil || len(batch.Signals) == 0 || string(body) != exactly(batch) {
			return
		}
		want := Sheddable
		for _, s := range batch.Signals {
			switch s.Type {
			case "purchase", "add_to_cart", "update_quantity", "remove_from_cart":
				want = Critical
			case "impression":
			default:
				want = max(want, Normal)
			}
		}
		if priority != want {
			t.Fatalf("%s: %s, want %s", body, priority, want)
		}
	})
}

// exactly is the only encoding of a batch with nothing but types.
func exactly(batch any) string {
	text, err := json.Marshal(batch)
	if err != nil {
		return ""
	}
	return string(text)
}
