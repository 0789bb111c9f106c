package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"storefront.internal/shared/fault"
)

func TestSplitFindsTheExactBytesOfElements(t *testing.T) {
	f := func(body string, want ...string) {
		t.Helper()
		got, err := Split([]byte(body))
		if err != nil {
			t.Errorf("Split(%s): %v", body, err)
			return
		}
		if len(got) != len(want) {
			t.Errorf("Split(%s): %d elements, want %d", body, len(got), len(want))
			return
		}
		for i := range got {
			if string(got[i]) != want[i] {
				t.Errorf("Split(%s)[%d] = %s, want %s", body, i, got[i], want[i])
			}
		}
	}
	f(`{"observations":[{}]}`, `{}`)
	f(" {\r\n\t\"observations\" : [ { \"a\" : 1 } , 2 ,\n[ ] ] } ", `{ "a" : 1 }`, `2`, `[ ]`)
	f(`{"x":{"observations":[1]},"observations":[null,true,false,-0.5e+10,"a\"b\u00e9"],"y":[]}`,
		`null`, `true`, `false`, `-0.5e+10`, `"a\"b\u00e9"`)
	f(`{"\u006fbservations":[1]}`, `1`)
	f(`{"Observations":[2],"\ud800":1,"observations":[1]}`, `1`)
	f(`{"observations":null,"observations":[1]}`, `1`) // null counts as absent
	f(`{"x":1,"x":2,"observations":[{"a":1,"a":"\u0000\ud800"}]}`, `{"a":1,"a":"\u0000\ud800"}`)
	f(`{"observations":[1e999999]}`, `1e999999`)
	deep := strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000)
	f(`{"x":`+deep+`,"observations":[`+deep+`]}`, deep)
	mixed := strings.Repeat(`{"a":[`, 200) + strings.Repeat(`]}`, 200)
	f(`{"observations":[`+mixed+`]}`, mixed)
}

func TestSplitRefuses(t *testing.T) {
	f := func(body, code, pointer string) {
		t.Helper()
		_, err := Split([]byte(body))
		if !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("Split(%s): %v, want invalid_request", body, err)
			return
		}
		if got := fault.From(err).Fields[0]; got.Code != code || got.Pointer != pointer {
			t.Errorf("Split(%s): %+v, want %s at %s", body, got, code, pointer)
		}
	}
	for _, body := range notJSON() {
		f(body, "invalid_json", "")
		violation := validate(new(jsontext.Decoder), []byte(body))
		if violation == nil || violation.Rule != InvalidJSON {
			t.Errorf("validate(%s): %v, want invalid_json", body, violation)
		}
		if o := readObservation([]byte(body)); o.Rejected != InvalidObservation {
			t.Errorf("readObservation(%s): %q", body, o.Rejected)
		}
	}
	f(`[]`, "invalid_type", "")
	f(`null`, "invalid_type", "")
	f(`"observations"`, "invalid_type", "")
	f(`{}`, "missing", "/observations")
	f(`{"observations":null}`, "missing", "/observations")
	f(`{"OBSERVATIONS":[1]}`, "missing", "/observations")
	f(`{"observations":{}}`, "invalid_type", "/observations")
	f(`{"observations":"a"}`, "invalid_type", "/observations")
	f(`{"observations":[]}`, "too_few", "/observations")
	f(`{"observations":[1],"observations":[2]}`, "duplicate_name", "/observations")
}

func notJSON() []string {
	return []string{
		``, ` `, `{`, `}`, `[`, `{"observations"`, `{"observations":`, `{"observations":[`,
		`{"observations":[1`,
		`{"observations":[1,]}`, `{"observations":[,1]}`, `{"observations":[1]`, `{"observations":[1]}x`,
		`{"observations":[1]}{}`, `{"observations":[1],}`, `{observations:[1]}`, `{"observations" [1]}`,
		`{"observations":[01]}`, `{"observations":[1.]}`, `{"observations":[.5]}`, `{"observations":[+1]}`,
		`{"observations":[1e]}`, `{"observations":[-]}`, `{"observations":[tru]}`, `{"observations":[True]}`,
		`{"observations":["a]}`, `{"observations":["\x"]}`, `{"observations":["\u12g4"]}`,
		`{"observations":["\`,
		"{\"observations\":[\"a\nb\"]}", "{\"observations\":[\"a\x00b\"]}", "{\"observations\":[\"\xff\"]}",
		"\ufeff{\"observations\":[1]}", `{"observations":[{]}]}`, `{"observations":[[}]]}`,
		`{"observations":[{"a"}]}`,
		`{"observations":[{1:2}]}`, `{"observations":['a']}`, `{"observations":[1]} /**/`, `[1`, `nul`,
		"\"\xed\xa0\x80\"",
	}
}

func TestSplitCountsElements(t *testing.T) {
	body := func(n int) []byte {
		return []byte(`{"observations":[` + strings.Repeat("{},", n-1) + `{}]}`)
	}
	if got, err := Split(body(MaxObservations)); err != nil || len(got) != MaxObservations {
		t.Errorf("%d elements: %d, %v", MaxObservations, len(got), err)
	}
	_, err := Split(body(1234))
	if !fault.Is(err, fault.ObservationBatchLimitExceeded) ||
		!strings.Contains(fault.From(err).Detail, "1234") {
		t.Errorf("1234 elements: %v", err)
	}
	broken := body(1234)
	if _, err = Split(broken[:len(broken)-1]); !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("what is no JSON is no batch, however long: %v", err)
	}
}

func TestAppendToAnElementKeepsTheNext(t *testing.T) {
	body := []byte(`{"observations":[{"raw":1},{"raw":2}]}`)
	elements, err := Split(body)
	if err != nil {
		t.Fatal(err)
	}
	o := readObservation([]byte(`{"external_id":"a","entity":"product","revision":1,"raw":1 ,"document":{} }`))
	_ = append(elements[0], "XXXX"...)
	_ = append(o.Raw, "XXXX"...)
	if string(elements[1]) != `{"raw":2}` || string(o.Document) != `{}` {
		t.Errorf("a neighbour changed: %s %s", elements[1], o.Document)
	}
}

func TestNamesOfLargeObjects(t *testing.T) {
	f := func(members int, more string, want bool) {
		t.Helper()
		var b strings.Builder
		b.WriteString(`{"first":{"a":1}`)
		for i := range members {
			fmt.Fprintf(&b, `,"n%d":{"a":1,"b":2}`, i)
		}
		b.WriteString(more + "}")
		violation := validate(new(jsontext.Decoder), []byte(b.String()))
		if got := violation != nil && violation.Rule == DuplicateName; got != want || violation != nil &&
			!want {
			t.Errorf("%d members and %s: %v", members, more, violation)
		}
	}
	for _, members := range []int{0, 14, 15, 16, 17, 18, 100, 10_000} {
		f(members, ``, false)
		f(members, `,"first":1`, true)
		f(members, `,"\u0066irst":1`, true)
		f(members, `,"F":1,"f\u00edrst":1,"fírst":1`, true)
		f(members, `,"last":{"x":1,"x":2}`, true)
		f(members, `,"`+strings.Repeat("y", 100)+`":1,"last":{"first":1}`, false)
	}
}
