package signaljson

import (
	"fmt"
	"strings"
	"testing"

	"storefront.internal/shared/fault"
)

// decodeBody returns the error of a body: its code, and for invalid_request the code and pointer of its
// field.
func decodeBody(t *testing.T, body string) (fault.Code, string, string) {
	t.Helper()
	var d Decoder
	err := d.Decode([]byte(body))
	if err == nil {
		return "", "", ""
	}
	if err.Code == fault.InvalidRequest {
		if len(err.Fields) != 1 || err.Fields[0].Detail == "" {
			t.Fatalf("%q: want one field with a detail, got %+v", body, err.Fields)
		}
		return err.Code, err.Fields[0].Code, err.Fields[0].Pointer
	}
	return err.Code, "", ""
}

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func repeat(element string, n int) string {
	return `{"signals":[` + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + `]}`
}

// TestInvalidBodies has bodies that are not strict JSON, or hold no list of signals.
func TestInvalidBodies(t *testing.T) {
	f := func(body, code, pointer string) {
		t.Helper()
		gotFault, gotCode, gotPointer := decodeBody(t, body)
		if gotFault != fault.InvalidRequest || gotCode != code || gotPointer != pointer {
			t.Errorf("%.120q: got %s %s at %q, want %s at %q", body, gotFault, gotCode, gotPointer, code,
				pointer)
		}
	}
	// Grammar.
	f(``, "invalid_json", "")
	f(` `, "invalid_json", "")
	f("\xef\xbb\xbf{\"signals\":[{}]}", "invalid_json", "")
	f(`{"signals":[{}]`, "invalid_json", "/signals")
	f(`{"signals":[{}`, "invalid_json", "/signals/0")
	f(`{"signals":[{},]}`, "invalid_json", "/signals/1")
	f(`{"signals":[,{}]}`, "invalid_json", "/signals/0")
	f(`{"signals":[{}],}`, "invalid_json", "/signals")
	f(`{"signals":[{} {}]}`, "invalid_json", "/signals/0")
	f(`{signals:[{}]}`, "invalid_json", "")
	f(`{'signals':[{}]}`, "invalid_json", "")
	f(`{"signals" [{}]}`, "invalid_json", "/signals")
	f(`{"signals":[{"a":}]}`, "invalid_json", "/signals/0/a")
	f(`{"signals":[{"a":1 "b":2}]}`, "invalid_json", "/signals/0/a")
	f(`{"signals":[nul]}`, "invalid_json", "/signals/0")
	f(`{"signals":[True]}`, "invalid_json", "/signals/0")
	f(`{"signals":[{"a":truefalse}]}`, "invalid_json", "/signals/0/a")
	f(`/**/{"signals":[{}]}`, "invalid_json", "")
	f("{\"signals\":[{\"a\":\"x\ny\"}]}", "invalid_json", "/signals/0/a")
	f("{\"signals\":[{\"a\":\"x\x00y\"}]}", "invalid_json", "/signals/0/a")
	f("{\"signals\":[{\"a\":1}\x00]}", "invalid_json", "/signals/0")
	f("\x00{\"signals\":[{}]}", "invalid_json", "")
	f("{\"signals\"\x0c:[{}]}", "invalid_json", "/signals")
	f(`{"signals":[{"a":"\x"}]}`, "invalid_json", "/signals/0/a")
	f(`{"signals":[{"a":"\u12g4"}]}`, "invalid_json", "/signals/0/a")
	f(`{"signals":[{"a":"\u12`, "invalid_json", "/signals/0/a")
	f(`{"signals":[{"a":"\`, "invalid_json", "/signals/0/a")
	f(`{"signals":[{"a":"abcdefgh`, "invalid_json", "/signals/0/a")
	f(`{"signals":[{"a":"\ud83d\u`, "invalid_json", "/signals/0/a")
	for _, n := range []string{"01", "+1", "-", ".5", "1.", "1.e1", "1e", "1e+", "-01", "0x1", "NaN",
		"Infinity", "1_0", "1,5x"} {
		_, code, _ := decodeBody(t, `{"signals":[{"position":`+n+`}]}`)
		if code != "invalid_json" {
			t.Errorf("number %s: %q", n, code)
		}
	}
	// Invalid UTF-8, anywhere.
	f("{\"signals\":[{\"a\":\"\xff\"}]}", "invalid_utf8", "")
	f("{\"signals\":[{\"\xc0\xaf\":1}]}", "invalid_utf8", "")
	f("{\"signals\":[{\"a\":\"\xed\xa0\x80\"}]}", "invalid_utf8", "")
	f("{\"signals\":[{}]}\xfe", "invalid_utf8", "")
	// Names given twice, anywhere, equal after unescaping too.
	f(`{"signals":[{}],"signals":[{}]}`, "duplicate_name", "/signals")
	f(`{"signals":[{}],"sign\u0061ls":[{}]}`, "duplicate_name", `/signals`)
	f(`{"x":1,"signals":[{}],"x":2}`, "duplicate_name", "/x")
	f(`{"signals":[{"signal_id":"a","signal_id":"a"}]}`, "duplicate_name", "/signals/0/signal_id")
	f(`{"signals":[{"signal_id":null,"signal_id":"a"}]}`, "duplicate_name", "/signals/0/signal_id")
	f(`{"signals":[{},{"visitor":{"visitor_id":"a","visitor_id":"b"}}]}`, "duplicate_name",
		"/signals/1/visitor/visitor_id")
	f(`{"signals":[{"client":{"viewport":{"width":1,"width":2}}}]}`, "duplicate_name",
		"/signals/0/client/viewport/width")
	f(`{"signals":[{"client":{"languages":[{"a":1,"a":2}]}}]}`, "duplicate_name",
		"/signals/0/client/languages/0/a")
	f(`{"signals":[{"u":{"deep":[0,{"k":1,"\u006b":2}]}}]}`, "duplicate_name", "/signals/0/u/deep/1/k")
	f(`{"a/b":{"~":1,"~":2},"signals":[{}]}`, "duplicate_name", "/a~1b/~0")
	f(`{"signals":[{"\ud800":1,"\ud800":2}]}`, "duplicate_name", "/signals/0/\ufffd")
	f(`{"signals":[1,2,{"":1,"":2}]}`, "duplicate_name", "/signals/2/")
	f(repeat(`{}`, 50)[:len(repeat(`{}`, 50))-2]+`,{"b":1,"b":2}]}`, "duplicate_name", "/signals/50/b")
	// Bytes behind the value, and depth.
	f(`{"signals":[{}]}{}`, "trailing_bytes", "")
	f(`{"signals":[{}]} x`, "trailing_bytes", "")
	f("{\"signals\":[{}]}\x00", "trailing_bytes", "")
	f(`{"x":`+nested(32)+`,"signals":[{}]}`, "too_deep", "/x"+strings.Repeat("/0", 31))
	f(`{"signals":[{"x":`+nested(30)+`}]}`, "too_deep", "/signals/0/x"+strings.Repeat("/0", 29))
	f(nested(100_000), "too_deep", strings.Repeat("/0", 32))
	// Types.
	f(`[]`, "invalid_type", "")
	f(`null`, "invalid_type", "")
	f(`"signals"`, "invalid_type", "")
	f(`{}`, "missing", "/signals")
	f(`{"Signals":[{}]}`, "missing", "/signals")
	f(`{"ſignals":[{}]}`, "missing", "/signals")
	f(`{"signals":null}`, "missing", "/signals")
	f(`{"signals":{}}`, "invalid_type", "/signals")
	f(`{"signals":"[]"}`, "invalid_type", "/signals")
	f(`{"signals":[]}`, "empty", "/signals")
	f(`{"signals":[ ]}`, "empty", "/signals")
}

// TestUnusualBodies has bodies that are unusual and still strict JSON.
func TestUnusualBodies(t *testing.T) {
	f := func(body string) {
		t.Helper()
		if gotFault, code, pointer := decodeBody(t, body); gotFault != "" {
			t.Errorf("%.120q: %s %s at %q", body, gotFault, code, pointer)
		}
	}
	f(" \t\r\n{ \"signals\" : [ {} ] } \n")
	f(`{"sign\u0061ls":[{}]}`)
	f(`{"x":{"a":1,"A":2},"y":[{"a":1},{"a":1}],"signals":[{"a":1},{"a":1}]}`)
	f(`{"x":` + nested(31) + `,"signals":[{"x":` + nested(29) + `}]}`)
	f(`{"x":[1e400,-0,0.5,1E-7,123456789012345678901234567890],"signals":[1,"a",null,[],true]}`)
	f(`{"x":"\ud800","\udfff":"\u0000","signals":[{"\ud800":1,"\ud801":2,"\u0000":3}]}`)
	f(`{"x":"\ud83d\ude00\"\\\/\b\f\n\r\t","signals":[{}]}`)
	f(repeat(`{}`, 50))
}

func TestTooMany(t *testing.T) {
	f := func(body string, n int) {
		t.Helper()
		var d Decoder
		err := d.Decode([]byte(body))
		if err == nil || err.Code != fault.SignalBatchLimitExceeded || err.Extra["actual_signals"] != n ||
			err.Extra["max_signals_per_batch"] != 50 {
			t.Errorf("%d signals: %+v", n, err)
		}
	}
	f(repeat(`{}`, 51), 51)
	f(repeat(`{"signal_id":17,"position":1e9}`, 51), 51)
	f(repeat(`0`, 100_000), 100_000)
}

// TestManyNames: a body of many names does not cost quadratic time, and a name given twice among them is
// found.
func TestManyNames(t *testing.T) {
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, `"n%d":0,`, i)
	}
	if _, code, _ := decodeBody(t, `{`+b.String()+`"signals":[{}]}`); code != "" {
		t.Errorf("distinct names: %s", code)
	}
	if _, code, _ := decodeBody(t, `{`+b.String()+`"signals":[{}],"n77\u0037":0}`); code != "duplicate_name" {
		t.Errorf("a name twice among many: %q", code)
	}
}

// TestPointerIsBounded: an error does not echo long names.
func TestPointerIsBounded(t *testing.T) {
	long := strings.Repeat("n", 100_000)
	_, code, pointer := decodeBody(t, `{"a":{"`+long+`":1,"`+long+`":1}}`)
	if code != "duplicate_name" || pointer != "/a" {
		t.Errorf("%s at a pointer of %d bytes", code, len(pointer))
	}
}

// TestReset decodes different bodies with one Decoder.
func TestReset(t *testing.T) {
	var d Decoder
	for range 3 {
		if err := d.Decode([]byte(repeat(`{"signal_id":"sig_1","x":{"y":1}}`, 50))); err != nil {
			t.Fatal(err)
		}
		d.Reset()
		if err := d.Decode([]byte(`{"signals":[{"type":"click"}]}`)); err != nil {
			t.Fatal(err)
		}
		if v := d.Element(0).Member(SignalID); v.Kind != Absent || d.Count() != 1 {
			t.Errorf("the decoder remembers the body before: %+v", v)
		}
		d.Reset()
		if err := d.Decode([]byte(`{"x":{"a":[`)); err == nil {
			t.Fatal("a broken body was accepted")
		}
		d.Reset()
	}
}
