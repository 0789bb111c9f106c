package signaljson

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// BenchmarkParsers reads a batch of ten signals by this package and by general parsers. Of those jsontext
// only checks the grammar; jsonv2 and encoding/json also fill structs, and encoding/json accepts what is not
// strict.
func BenchmarkParsers(b *testing.B) {
	body, err := os.ReadFile("testdata/ten_signals.json")
	if err != nil {
		b.Fatal(err)
	}
	run := func(name string, read func() error) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	var d Decoder
	run("signaljson", func() error {
		d.Reset()
		if err := d.Decode(body); err != nil {
			return err
		}
		return nil
	})
	tokens := jsontext.NewDecoder(bytes.NewReader(nil))
	run("jsontext tokens", func() error {
		tokens.Reset(bytes.NewReader(body))
		for {
			if _, err := tokens.ReadToken(); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
		}
	})
	run("jsonv2 structs", func() error { return json.Unmarshal(body, new(benchBatch)) })
	run("encoding/json structs", func() error { return stdjson.Unmarshal(body, new(benchBatch)) })
}

type benchBatch struct {
	Signals []struct {
		SignalID   string `json:"signal_id"`
		Type       string `json:"type"`
		OccurredAt string `json:"occurred_at"`
		DecisionID string `json:"decision_id"`
		ItemID     string `json:"item_id"`
		VariantID  string `json:"variant_id"`
		Position   *int32 `json:"position"`
		Quantity   *int32 `json:"quantity"`
		Order      string `json:"order_external_id"`
		Visitor    struct {
			VisitorID string `json:"visitor_id"`
			SessionID string `json:"session_id"`
		} `json:"visitor"`
		Client struct {
			PageURL   string   `json:"page_url"`
			Languages []string `json:"languages"`
			Timezone  string   `json:"timezone"`
			Viewport  struct {
				Width      int     `json:"width"`
				Height     int     `json:"height"`
				PixelRatio float64 `json:"pixel_ratio"`
			} `json:"viewport"`
		} `json:"client"`
	} `json:"signals"`
}
