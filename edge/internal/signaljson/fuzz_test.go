package signaljson

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"storefront.internal/shared/fault"
)

// strictReference reads the body with jsontext, which is strict by default: whether it is one JSON value with
// distinct names and valid UTF-8, nested at most maxDepth deep.
func strictReference(body []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(body))
	values := 0
	for {
		_, err := d.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return values == 1
		case err != nil || d.StackDepth() > maxDepth:
			return false
		case d.StackDepth() == 0:
			values++
		}
	}
}

// loneSurrogates matches escapes that jsontext rejects as invalid UTF-8, while the Decoder leaves them to the
// element.
var loneSurrogates = regexp.MustCompile(`(?i)\\ud[89a-f]`)

// FuzzDecode compares the Decoder with jsontext: they accept the same bodies as strict JSON, and find the
// same known members in the elements.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"signals":[{}]}`, `{"signals":[{"a":1,"a":2}]}`,
		`{"signals":[{"a":"\u00e9\n"},[1,2.5e-3,-0],null,true,"x"]}`, "{\"signals\":[{\"a\":\"\xff\"}]}",
		`{"a":{"b":[{"c":{"d":1,"\u0064":2}}]},"signals":[{}]}`,
		`{"signals":[{"visitor":{"visitor_id":"vis_a"},` +
			`"client":{"viewport":{"width":1},"languages":["es"]}}]} `,
		`{"signals":[0]}{}`, ``, ` `, `[`, `{"signals":` + nested(32) + `}`,
		repeat(`{"signal_id":"sig_1"}`, 51), `{"":1,"signals":[{"":""}]}`, "\ufeff{}",
		`{"signals":[{"position":01}]}`, `{"a":"\ud83d\ude00","signals":[]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if loneSurrogates.Match(body) {
			return
		}
		var d Decoder
		err := d.Decode(body)
		strict := err == nil || err.Code == fault.SignalBatchLimitExceeded ||
			slices.Contains([]string{string(wrongType), string(missingSignals), string(emptySignals)},
				err.Fields[0].Code)
		if want := strictReference(body); strict != want {
			t.Fatalf("%q: strict %v, jsontext says %v (%v)", body, strict, want, err)
		}
		if err == nil {
			compareMembers(t, &d, body)
		}
	})
}

func compareMembers(t *testing.T, d *Decoder, body []byte) {
	t.Helper()
	var want struct {
		Signals []jsontext.Value `json:"signals"`
	}
	if err := json.Unmarshal(body, &want); err != nil || len(want.Signals) != d.Count() {
		t.Fatalf("%q: %d signals, want %d (%v)", body, d.Count(), len(want.Signals), err)
	}
	for i, raw := range want.Signals {
		e := d.Element(i)
		if e.IsObject() != (raw.Kind() == '{') {
			t.Fatalf("%q: element %d is of kind %d", body, i, e.self.Kind)
		}
		if e.IsObject() {
			compareElement(t, d, e, raw)
		}
	}
}

func compareElement(t *testing.T, d *Decoder, e *Element, raw jsontext.Value) {
	t.Helper()
	var members map[string]jsontext.Value
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for m := SignalID; m <= Client; m++ {
		if e.Member(m).Kind != Absent {
			seen++
		}
	}
	for name, want := range members {
		m := find(element, name)
		if m == unknown {
			continue
		}
		seen--
		v := e.Member(m)
		if v.Kind == Text {
			var s string
			if err := json.Unmarshal(want, &s); err != nil || s != d.String(v) {
				t.Errorf("%s: text %q, want %q (%v)", raw, d.String(v), s, err)
			}
		}
		if got := d.Raw(v); !bytes.Equal(got, want) {
			t.Errorf("%s: %s is %s, want %s", raw, name, got, want)
		}
	}
	if seen != 0 {
		t.Errorf("%s: %d known members that are not in the element", raw, seen)
	}
}
