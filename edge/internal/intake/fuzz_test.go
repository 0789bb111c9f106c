package intake

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"storefront.internal/shared/fault"
)

// strictReference reads the body with jsontext, which is strict by default: whether it is one JSON value with distinct
// names and valid UTF-8, nested at most maxDepth deep.
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

// loneSurrogates may be there: jsontext refuses them as invalid UTF-8, and we leave them to the element.
var loneSurrogates = regexp.MustCompile(`(?i)\\ud[89a-f]`)

// FuzzDecode compares the scanner with jsontext: the same bodies are strict, and of those with signals the known
// members are at the same places.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"signals":[{}]}`, `{"signals":[{"a":1,"a":2}]}`, `{"signals":[{"a":"\u00e9\n"},[1,2.5e-3,-0],null,true,"x"]}`, "{\"signals\":[{\"a\":\"\xff\"}]}",
		`{"a":{"b":[{"c":{"d":1,"\u0064":2}}]},"signals":[{}]}`, `{"signals":[{"visitor":{"visitor_id":"vis_a"},"client":{"viewport":{"width":1},"languages":["es"]}}]} `,
		`{"signals":[0]}{}`, ``, ` `, `[`, `{"signals":` + nested(32) + `}`, repeat(`{"signal_id":"sig_1"}`, 51), `{"":1,"signals":[{"":""}]}`, "\ufeff{}", `{"signals":[{"position":01}]}`, `{"a":"\ud83d\ude00","signals":[]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if loneSurrogates.Match(body) {
			return
		}
		var sc scanner
		err := sc.decode(body)
		strict := err == nil || err.Code == fault.SignalBatchLimitExceeded ||
			slices.Contains([]string{string(wrongType), string(missingSignals), string(emptySignals)}, err.Fields[0].Code)
		if want := strictReference(body); strict != want {
			t.Fatalf("%q: strict %v, jsontext says %v (%v)", body, strict, want, err)
		}
		if err == nil {
			compareMembers(t, &sc, body)
		}
	})
}

func compareMembers(t *testing.T, sc *scanner, body []byte) {
	t.Helper()
	var want struct {
		Signals []jsontext.Value `json:"signals"`
	}
	if err := json.Unmarshal(body, &want); err != nil || len(want.Signals) != sc.batch.count {
		t.Fatalf("%q: %d signals, want %d (%v)", body, sc.batch.count, len(want.Signals), err)
	}
	for i, raw := range want.Signals {
		e := &sc.batch.elements[i]
		if (e.self.kind == object) != (raw.Kind() == '{') {
			t.Fatalf("%q: element %d is of kind %d", body, i, e.self.kind)
		}
		if e.self.kind == object {
			compareElement(t, sc, e, raw)
		}
	}
}

func compareElement(t *testing.T, sc *scanner, e *element, raw jsontext.Value) {
	t.Helper()
	var members map[string]jsontext.Value
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for at := slotSignalID; at <= slotClient; at++ {
		if e.members[at].kind != absent {
			seen++
		}
	}
	for name, want := range members {
		at := findInElement(name)
		if at == noSlot {
			continue
		}
		seen--
		v := e.members[at]
		got := jsontext.Value(sc.b[v.start:v.end])
		if v.kind == text {
			got = jsontext.Value(sc.b[v.start-1 : v.end+1])
			var s string
			if err := json.Unmarshal(want, &s); err != nil || s != sc.string(&v) {
				t.Errorf("%s: text %q, want %q (%v)", raw, sc.string(&v), s, err)
			}
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: %s is %s, want %s", raw, name, got, want)
		}
	}
	if seen != 0 {
		t.Errorf("%s: %d known members too many", raw, seen)
	}
}

// FuzzVisitor: what is kept of a shopper is well-formed and as sent, and everything else is discarded.
func FuzzVisitor(f *testing.F) {
	for _, id := range []string{"vis_a", "vis_5491112345678", "vis_1234567", "vis_123456", "vis_", "ses_a", "vis_a@b", "vis_%40", "vis_" + strings.Repeat("a", 65), "VIS_a", "\x00"} {
		f.Add(id, "ses_"+id)
	}
	wellFormed := regexp.MustCompile(`^(vis|ses)_[A-Za-z0-9_-]{1,64}$`)
	telephone := regexp.MustCompile(`^[a-z]+_[0-9]{7,15}$`)
	reader := NewShopperReader()
	f.Fuzz(func(t *testing.T, visitor, session string) {
		body, err := json.Marshal(map[string]any{"visitor": map[string]string{"visitor_id": visitor, "session_id": session}})
		if err != nil {
			return // no UTF-8
		}
		got, err := reader.Read(body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		good := func(s, prefix string) bool {
			return strings.HasPrefix(s, prefix) && wellFormed.MatchString(s) && !telephone.MatchString(s)
		}
		switch want := good(visitor, "vis_") && good(session, "ses_"); {
		case want != (got.Visitor != nil), want == got.DiscardedVisitor:
			t.Fatalf("%s: kept %t, want %t", body, got.Visitor != nil, want)
		case want && (string(got.Visitor.VisitorID) != visitor || string(got.Visitor.SessionID) != session):
			t.Fatalf("%s became %+v", body, got.Visitor)
		}
	})
}
