package overload

import (
	"encoding/json"
	"testing"
)

// FuzzClassOfBatch: a sound batch is as dear as its dearest signal, and nothing makes it panic.
func FuzzClassOfBatch(f *testing.F) {
	f.Add([]byte(`{"signals":[{"type":"impression"},{"type":"purchase"}]}`))
	f.Add([]byte(`{"signals":[{"type" : "click"}]}`))
	f.Add([]byte(`{"signals":[{"type":"impression","client":{"page_url":"\"type\":\"purchase\""}}]}`))
	f.Add([]byte(`"type":`))
	f.Fuzz(func(t *testing.T, body []byte) {
		class := ClassOfBatch(body)
		var batch struct {
			Signals []struct {
				Type string `json:"type"`
			} `json:"signals"`
		}
		if json.Unmarshal(body, &batch) != nil || len(batch.Signals) == 0 || string(body) != exactly(batch) {
			return
		}
		want := Impressions
		for _, s := range batch.Signals {
			switch s.Type {
			case "purchase", "add_to_cart", "update_quantity", "remove_from_cart":
				want = Sales
			case "impression":
			default:
				want = max(want, Ordinary)
			}
		}
		if class != want {
			t.Fatalf("%s: %s, want %s", body, class, want)
		}
	})
}

// exactly is the one spelling of a batch that holds nothing but types.
func exactly(batch any) string {
	text, err := json.Marshal(batch)
	if err != nil {
		return ""
	}
	return string(text)
}
