package signal

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"storefront.internal/shared/ident"
)

func number(n int32) *int32 { return &n }

func exampleRecord() *Record {
	return &Record{
		RecordID: "018f8b0e-0000-7000-8000-000000000001", ConnectionID: "con_1", StoreID: "str_1",
		ReceivedAt: time.Date(2026, 11, 21, 10, 0, 0, 123456000, time.UTC),
		Audit: Audit{IP: "203.0.113.9", UserAgent: "UA \"x\"\\\x01", AcceptLanguage: "es-AR",
			Origin: "https://shop.example", Referer: "https://shop.example/p", Crawler: true},
		Signals: []Recorded{
			{Index: 0, Signal: Signal{ID: "sig_1", Type: Impression,
				OccurredAt: time.Date(2026, 11, 21, 9, 59, 59, 0, time.UTC), DecisionID: "dec_1",
				Position: number(0)}},
			{Index: 3, Signal: Signal{ID: "sig_2", Type: UpdateQuantity,
				OccurredAt: time.Date(2026, 11, 21, 9, 59, 59, 5000, time.UTC), DecisionID: "dec_1",
				ItemID: "itm_1", VariantID: "var_1",
				Quantity: number(0), Visitor: &Visitor{VisitorID: "vis_a", SessionID: "ses_a"},
				Client: json.RawMessage(`{"timezone":"UTC"}`)}},
			{Index: 4, Signal: Signal{ID: "sig_3", Type: Purchase,
				OccurredAt: time.Date(2026, 11, 21, 9, 59, 59, 0, time.UTC), DecisionID: "dec_1",
				ItemID: "itm_1", OrderExternalID: "№ 7\u2028"}},
		},
	}
}

func exampleDecision() *Decision {
	return &Decision{DecisionID: "dec_1", ConnectionID: "con_1", StoreID: "str_1", Placement: "home",
		Source:   "engine",
		ServedAt: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC),
		Items: []DecisionItem{{Position: 0, ItemID: "itm_1", VariantID: "var_1"},
			{Position: 1, ItemID: "itm_2"}},
		EngineIDs: json.RawMessage(`{"request":"r1"}`), Visitor: &Visitor{VisitorID: "vis_a"}}
}

// compactRecord is exampleRecord with signals that have their Decision, visitor and client in common.
func compactRecord() *Record {
	r := exampleRecord()
	r.Audit.UserAgent, r.Signals[2].OrderExternalID = "UA", "7" // without escapes
	for i := range 4 {
		one := r.Signals[[]int{1, 1, 2, 1}[i]]
		one.Index, one.ID = 5+i, ident.SignalID("sig_like_"+strconv.Itoa(i))
		r.Signals = append(r.Signals, one)
	}
	return r
}

// The golden files hold the bytes of each version, which every later build has to read.
func TestGolden(t *testing.T) {
	f := func(file string, got []byte) {
		t.Helper()
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
		}
	}
	f("testdata/record.v1.json", AppendRecord(nil, exampleRecord()))
	f("testdata/record.v2.json", AppendCompact(nil, compactRecord()))
	f("testdata/decision.v1.json", AppendDecision(nil, exampleDecision()))
}

func TestRoundTrip(t *testing.T) {
	r, err := DecodeRecord(AppendRecord(nil, exampleRecord()))
	if err != nil || !reflect.DeepEqual(r, exampleRecord()) {
		t.Errorf("record: %+v, %v", r, err)
	}
	for _, want := range []*Record{exampleRecord(), compactRecord()} {
		r, err := DecodeRecord(AppendCompact(nil, want))
		if err != nil || !reflect.DeepEqual(r, want) {
			t.Errorf("compact record: %+v, %v", r, err)
		}
	}
	d, err := DecodeDecision(AppendDecision(nil, exampleDecision()))
	if err != nil || !reflect.DeepEqual(d, exampleDecision()) {
		t.Errorf("decision: %+v, %v", d, err)
	}
}

func TestMalformedAndNewer(t *testing.T) {
	for _, s := range []string{"", "{}", "[]", "\xff", `{"schema":0}`, `{"schema":1}`,
		`{"schema":1,"record_id":"r","connection_id":"c","received_at":"2026-01-01T00:00:00Z",` +
			`"signals":[]}`} {
		if _, err := DecodeRecord([]byte(s)); err == nil || errors.Is(err, ErrUnknownSchema) {
			t.Errorf("DecodeRecord(%q): %v", s, err)
		}
		if _, err := DecodeDecision([]byte(s)); err == nil || errors.Is(err, ErrUnknownSchema) {
			t.Errorf("DecodeDecision(%q): %v", s, err)
		}
	}
	for _, s := range []string{`{"schema":3}`, `{"schema":3,"signals":"other"}`} {
		if _, err := DecodeRecord([]byte(s)); !errors.Is(err, ErrUnknownSchema) {
			t.Errorf("DecodeRecord(%q): %v", s, err)
		}
	}
	if _, err := DecodeDecision([]byte(`{"schema":2}`)); !errors.Is(err, ErrUnknownSchema) {
		t.Errorf("a newer Decision: %v", err)
	}
}

// A signal can only be like one that stands before it.
func TestLikeWhat(t *testing.T) {
	for _, like := range []string{"0", "1", "2", "-1", "99999999999999999999", `"0"`} {
		s := strings.Replace(string(AppendCompact(nil, compactRecord())), `{"index":0,`,
			`{"index":0,"like":`+like+`,`, 1)
		if r, err := DecodeRecord([]byte(s)); err == nil || errors.Is(err, ErrUnknownSchema) {
			t.Errorf("like %s: %v, %+v", like, err, r)
		}
	}
	// Version 1 does not know the member.
	s := strings.Replace(string(AppendRecord(nil, exampleRecord())), `{"index":0,`, `{"index":0,"like":7,`, 1)
	if r, err := DecodeRecord([]byte(s)); err != nil || !reflect.DeepEqual(r, exampleRecord()) {
		t.Errorf("version 1: %v, %+v", err, r)
	}
}

// A record with many Decisions is written in time that grows with its length.
func TestCompactLooksAtFew(t *testing.T) {
	r := exampleRecord()
	one := r.Signals[1]
	r.Signals = nil
	for i := range 20 {
		one.Index, one.DecisionID = i, ident.DecisionID("dec_"+strconv.Itoa(i%10))
		r.Signals = append(r.Signals, one)
	}
	written := AppendCompact(nil, r)
	if n := bytes.Count(written, []byte(`"decision_id":"dec_0"`)); n != 2 {
		t.Errorf("dec_0 stands %d times: %s", n, written)
	}
	if got, err := DecodeRecord(written); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("%v, %+v", err, got)
	}
}

func TestAppendResults(t *testing.T) {
	got := string(AppendResults(nil, []Result{
		{Index: 0, SignalID: "sig_1", HasSignalID: true, Status: Accepted},
		{Index: 1, Status: Rejected, Reason: "missing_signal_id"},
		{Index: 2, SignalID: "a\"\n", HasSignalID: true, Status: Rejected, Reason: "invalid_signal_id"},
	}))
	want := `{"results":[{"index":0,"signal_id":"sig_1","status":"accepted"},` +
		`{"index":1,"signal_id":null,"status":"rejected","reason":"missing_signal_id"},` +
		`{"index":2,"signal_id":"a\"\u000a","status":"rejected","reason":"invalid_signal_id"}]}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "a", "\x00\x1f\"\\", "\xff\xfe", "é\u2028😀", strings.Repeat("x", 300)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(appendString(nil, s), &got); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(s, ""); strings.ToValidUTF8(strings.ReplaceAll(got, "\ufffd", ""),
			"") != strings.ReplaceAll(want, "\ufffd", "") {
			t.Errorf("%q became %q", s, got)
		}
	})
}

func TestLedgerDigest(t *testing.T) {
	if LedgerDigest("con_a", "bsig_1") == LedgerDigest("con_ab", "sig_1") {
		t.Error("moving a character between connection and signal gives the same digest")
	}
}

// ten is a record of ten signals of one visitor about one Decision.
func ten() *Record {
	r := exampleRecord()
	r.Audit.UserAgent = "Mozilla/5.0 (X11; Linux x86_64)"
	one := r.Signals[1]
	one.Client = json.RawMessage(`{"page_url":"https://shop.example/products/blue-shirt",` +
		`"referrer_url":"https://shop.example/","languages":["es-AR","es"],` +
		`"timezone":"America/Argentina/Buenos_Aires"}`)
	one.Visitor = &Visitor{VisitorID: "vis_0123456789abcdef", SessionID: "ses_0123456789abcdef"}
	one.DecisionID = "dec_k1_0123456789abcdef0123456789abcdef0123456789abcdef"
	r.Signals = nil
	for i := range 10 {
		one.Index, one.ID = i, ident.SignalID("sig_0123456789abcdef_"+strconv.Itoa(i))
		r.Signals = append(r.Signals, one)
	}
	return r
}

func BenchmarkAppendRecord(b *testing.B) {
	r := ten()
	for name, write := range writers() {
		b.Run(name, func(b *testing.B) {
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf = write(buf[:0], r)
			}
			b.ReportMetric(float64(len(buf)), "bytes")
		})
	}
}

func writers() map[string]func([]byte, *Record) []byte {
	return map[string]func([]byte, *Record) []byte{"1": AppendRecord, "2": AppendCompact}
}

// TestWrittenFormIsReadFast: what AppendRecord and AppendDecision write needs no reflection, unless a text
// has an escape.
func TestWrittenFormIsReadFast(t *testing.T) {
	r := exampleRecord()
	r.Audit.UserAgent = "UA"
	if got, ok := newReader(AppendRecord(nil, r)).readRecord(); !ok || !reflect.DeepEqual(&got, r) {
		t.Errorf("%v, %+v", ok, got)
	}
	r.Audit = Audit{}
	if got, ok := newReader(AppendRecord(nil, r)).readRecord(); !ok || !reflect.DeepEqual(&got, r) {
		t.Errorf("without an audit: %v, %+v", ok, got)
	}
	r = compactRecord()
	if got, ok := newReader(AppendCompact(nil, r)).readRecord(); !ok || !reflect.DeepEqual(&got, r) {
		t.Errorf("compact: %v, %+v", ok, got)
	}
	d := exampleDecision()
	if got, ok := newReader(AppendDecision(nil, d)).readDecision(); !ok || !reflect.DeepEqual(&got, d) {
		t.Errorf("%v, %+v", ok, got)
	}
}

func BenchmarkDecodeRecord(b *testing.B) {
	for version, write := range writers() {
		record := write(nil, ten())
		for name, decode := range map[string]func([]byte) (*Record, error){
			"reader": DecodeRecord, "reflection": unmarshalRecord,
		} {
			b.Run(version+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := decode(record); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
