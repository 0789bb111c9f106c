package catalog

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

const soundCategory = `{"name":{"es":"Ropa"}}`

func TestReadObservation(t *testing.T) {
	o := readObservation([]byte(` { "external_id" : "a\u00e9\/1", "entity":"category","revision":9007199254740991,
		"operation":"upsert","source_updated_at":"2026-02-03T04:05:06.1234567-03:00",
		"document": {"name" : {"es":"Ropa"}} , "raw": [1, 1.0 , {"b":1,"a":"\u00e9"} ] ,"extra":{"\u0000":[]} } `))
	if o.Rejected != "" || o.Quarantined != nil {
		t.Fatalf("%q %v", o.Rejected, o.Quarantined)
	}
	if o.ExternalID != "aé/1" || o.Entity != Category || o.Revision != MaxRevision || o.Operation != Upsert {
		t.Errorf("%q %q %d %q", o.ExternalID, o.Entity, o.Revision, o.Operation)
	}
	if want := time.Date(2026, 2, 3, 7, 5, 6, 123456000, time.UTC); !o.SourceUpdatedAt.Equal(want) {
		t.Errorf("source_updated_at %v, want %v", o.SourceUpdatedAt, want)
	}
	if string(o.Raw) != `[1, 1.0 , {"b":1,"a":"\u00e9"} ]` ||
		string(o.Document) != `{"name" : {"es":"Ropa"}}` {
		t.Errorf("spans: raw %s document %s", o.Raw, o.Document)
	}
	if !strings.HasSuffix(string(o.Completed.Document), `"name":{"es":"Ropa"}}`) {
		t.Errorf("completed %s", o.Completed.Document)
	}
}

func TestReadObservationWithout(t *testing.T) {
	f := func(element string, operation Operation, raw string, content bool) {
		t.Helper()
		o := readObservation([]byte(element))
		if o.Rejected != "" || o.Quarantined != nil || o.Operation != operation || string(o.Raw) != raw ||
			(o.Completed.Document != nil) != content || !o.SourceUpdatedAt.IsZero() {
			t.Errorf("%s: %q %v %q raw %s", element, o.Rejected, o.Quarantined, o.Operation, o.Raw)
		}
	}
	head := `{"external_id":"a","entity":"category","revision":1`
	f(head+`,"document":`+soundCategory+`}`, Upsert, "", true)
	f(head+`,"document":`+soundCategory+`,"operation":null,"source_updated_at":null,"raw":null}`, Upsert,
		"null", true)
	f(head+`,"operation":"delete"}`, Delete, "", false)
	f(head+`,"operation":"delete","document":null,"raw":""}`, Delete, `""`, false)
	// Malformed unknown names are ignored.
	f(head+`,"\ud800":1,"\ud800":2,"operation":"delete"}`, Delete, "", false)
}

func TestRejections(t *testing.T) {
	seen := make(map[RejectionReason]bool)
	f := func(element string, want RejectionReason) {
		t.Helper()
		o := readObservation([]byte(element))
		if o.Rejected != want || o.Quarantined != nil || o.Completed.Document != nil {
			t.Errorf("%.200s: %q %v, want %q", element, o.Rejected, o.Quarantined, want)
		}
		seen[want] = true
	}
	for _, element := range []string{`1`, `null`, `"a"`, `[]`, `[{}]`, `true`, ``, `{`, `{"a":1,}`,
		`{"a":1}x`, `{"a"}`} {
		f(element, InvalidObservation)
	}
	f(`{}`, MissingExternalID)
	f(`{"external_id":null,"entity":"x","revision":0}`, MissingExternalID)
	f(`{"External_id":"a","entity":"product","revision":1}`, MissingExternalID)
	for _, id := range []string{`""`, `1`, `{}`, `[]`, `true`, `"\u0000"`, `"a\ud800"`, `"\udc00\ud800"`,
		`"` + strings.Repeat("a", MaxExternalID+1) + `"`, `"a","external_id":"a"`} {
		f(`{"external_id":`+id+`,"entity":"product","revision":1}`, MalformedExternalID)
	}
	f(`{"external_id":"a","revision":1}`, MissingEntity)
	f(`{"external_id":"a","entity":null,"revision":1}`, MissingEntity)
	for _, entity := range []string{`""`, `"Product"`, `"products"`, `1`, `{}`, `"product\u0000"`,
		`"product","entity":"order"`} {
		f(`{"external_id":"a","entity":`+entity+`,"revision":1}`, MalformedEntity)
	}
	f(`{"external_id":"a","entity":"order"}`, MissingRevision)
	f(`{"external_id":"a","entity":"order","revision":null}`, MissingRevision)
	for _, revision := range []string{`0`, `-0`, `-1`, `1.0`, `1e0`, `1E2`, `"1"`, `9007199254740992`,
		`99999999999999999999`,
		`{}`, `true`, `1,"revision":2`} {
		f(`{"external_id":"a","entity":"order","revision":`+revision+`}`, MalformedRevision)
	}
	for _, r := range allRejections() {
		if !seen[r] {
			t.Errorf("no case for %s", r)
		}
	}
	longest := `{"external_id":"` + strings.Repeat("é", MaxExternalID) +
		`","entity":"order","revision":1,"operation":"delete"}`
	if o := readObservation([]byte(longest)); o.Rejected != "" || o.Quarantined != nil {
		t.Errorf("the longest external id: %q %v", o.Rejected, o.Quarantined)
	}
}

func TestQuarantine(t *testing.T) {
	f := func(entity, members, want string) {
		t.Helper()
		o := readObservation([]byte(`{"external_id":"a","entity":"` + entity + `","revision":1,` + members +
			`}`))
		if o.Rejected != "" || o.Quarantined == nil || o.Completed.Document != nil {
			t.Errorf("%.200s: %q %v", members, o.Rejected, o.Quarantined)
			return
		}
		if got := o.Quarantined.String(); got != want {
			t.Errorf("%.200s: %q, want %q", members, got, want)
		}
	}
	doc := `"document":` + soundCategory
	f("category", doc+`,"operation":"replace"`, "invalid_operation at /operation")
	f("category", doc+`,"operation":1`, "invalid_operation at /operation")
	f("category", doc+`,"operation":"upsert\u0000"`, "invalid_operation at /operation")
	f("category", doc+`,"source_updated_at":"2026-01-01"`, "invalid_time at /source_updated_at")
	f("category", doc+`,"source_updated_at":1767225600`, "invalid_time at /source_updated_at")
	f("category", `"operation":"upsert"`, "missing_document at /document")
	f("category", `"document":null`, "missing_document at /document")
	f("category", `"operation":"delete",`+doc, "unexpected_document at /document")
	f("category", `"operation":"delete","document":{}`, "unexpected_document at /document")
	f("category", doc+`,`+doc, "duplicate_name at /document")
	f("category", doc+`,"raw":1,"raw":1`, "duplicate_name at /raw")
	f("category", doc+`,"x":1,"\u0078":1`, "duplicate_name at /x")
	f("category", `"document":[]`, "wrong_type at /document")
	f("category", `"document":"{}"`, "wrong_type at /document")
	f("category", `"document":{"name":{"es":"a"},"name":{"es":"b"}}`, "duplicate_name at /document/name")
	f("category", `"document":{"name":{"es":"a","\u0065s":"b"}}`, "duplicate_name at /document/name/es")
	f("category", `"document":{"name":{"es":"a\u0000"}}`, "nul_character at /document/name/es")
	f("category", `"document":{"name":{"es":"a"},"x":[1,{"y":"\ud800"}]}`,
		"lone_surrogate at /document/x/1/y")
	f("category", `"document":{"name":{"es":"\udc00"}}`, "lone_surrogate at /document/name/es")
	f("category", `"document":{"name":{"es":"\ud83d\u0041"}}`, "lone_surrogate at /document/name/es")
	f("category", `"document":{"name":{"es":"a"},"x":[1e400,-1e-400,1e401]}`,
		"huge_exponent at /document/x/2")
	f("category", doc+`,"raw":{"a":1E-00000401}`, "huge_exponent at /raw/a")
	f("category", doc+`,"raw":"\u0000"`, "nul_character at /raw")
	f("category", doc+`,"raw":{"a\u0000":1}`, "nul_character at /raw")
	f("category", doc+`,"raw":{"a":{"b/~c":1,"b/~c":1}}`, "duplicate_name at /raw/a/b~1~0c")
	f("category", doc+`,"raw":{"`+strings.Repeat("a", 65)+`":{"b":"\u0000"}}`, "nul_character at /raw")
	f("category", doc+`,"raw":{"a\u0001":{"b":"\u0000"}}`, "nul_character at /raw")
	deep := strings.Repeat(`[`, 33) + strings.Repeat(`]`, 33)
	f("category", doc+`,"raw":`+deep, "too_deep at /raw"+strings.Repeat("/0", 32))
	f("category", `"operation":"delete","raw":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000),
		"too_deep at /raw"+strings.Repeat("/0", 32))
	f("category", `"document":{"name":{"es":"a"},"x":`+deep[1:len(deep)-1]+`}`, "too_deep at /document/x"+
		strings.Repeat("/0", 31))
}

func TestBoundsThatHold(t *testing.T) {
	f := func(members string) {
		t.Helper()
		o := readObservation([]byte(`{"external_id":"a","entity":"category","revision":1,` + members + `}`))
		if o.Rejected != "" || o.Quarantined != nil {
			t.Errorf("%.200s: %q %v", members, o.Rejected, o.Quarantined)
		}
	}
	deep := strings.Repeat(`[`, 32) + strings.Repeat(`]`, 32)
	f(`"document":` + soundCategory + `,"raw":` + deep)
	f(`"document":{"name":{"es":"a"},"x":` + deep[1:len(deep)-1] + `}`)
	f(`"document":` + soundCategory + `,"raw":[1e400,1E-400,0e000000400,123456789012345678901234567890]`)
	f(`"document":` + soundCategory + `,"raw":"` + strings.Repeat("a", 3<<20) + `"`)
	f(`"document":{"name":{"es":"` + strings.Repeat("a", 1<<20) + `"}}`)
	f(`"document":{"name":{"es":"\ud83d\ude00\u00e9\b\f\n\r\t\/\\\""}}`)
	f(`"document":` + soundCategory + `,"raw":{"a":{"x":1},"b":{"x":1}}`)
}

func TestReasonsOfOrdersHoldNoBuyerData(t *testing.T) {
	f := func(members, want string) {
		t.Helper()
		o := readObservation([]byte(`{"external_id":"a","entity":"order","revision":1,` + members + `}`))
		if o.Quarantined == nil || o.Quarantined.String() != want {
			t.Errorf("%s: %v, want %s", members, o.Quarantined, want)
		}
	}
	f(`"document":{"buyer":{"ana@example.com":"\u0000"}}`, "nul_character at /document/buyer")
	f(`"document":{"buyer":{"5491155550000":1,"5491155550000":1}}`, "duplicate_name at /document/buyer")
	f(`"document":{"ana@example.com":"\u0000"}`, "nul_character at /document")
	f(`"document":{"lines":[{"ana":"\u0000"}]}`, "nul_character at /document/lines/0")
	f(`"document":{"status":{"5491155550000":"\ud800"}}`, "lone_surrogate at /document/status")
	f(`"raw":{"status":"\u0000"}`, "missing_document at /document")
	f(`"operation":"delete","raw":{"status":"\u0000"}`, "nul_character at /raw")
	f(`"ana@example.com":1,"ana@example.com":1`, "duplicate_name")
	f(`"document":{"status":"open","currency":"ARS","total":{"amount":"1,5"}}`,
		"invalid_amount at /document/total/amount")
	f(`"document":`+strings.Replace(soundOrder, `"unit_price":{"amount":"1500.00"`,
		`"unit_price":{"amount":"x"`, 1),
		"invalid_amount at /document/lines/0/unit_price/amount")
}

func TestNothingPrintsAnOrder(t *testing.T) {
	o := readObservation([]byte(`{"external_id":"a","entity":"order","revision":1,"raw":"ana@example.com","document":` + soundOrder + `}`))
	if o.Quarantined != nil {
		t.Fatal(o.Quarantined)
	}
	d := read(t, Order, soundOrder).(*OrderDocument)
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "observation", o, "pointer", &o, "order", d, "value",
		*d)
	printed := log.String() + fmt.Sprintf("%v %+v %#v %s %v %+v %#v", o, &o, o, o, d, *d, *d)
	for _, secret := range []string{"ana@example.com", "1500.00", "97 110 97"} {
		if strings.Contains(printed, secret) {
			t.Errorf("%s is printed: %s", secret, printed)
		}
	}
}

// allRejections lists all reasons.
func allRejections() []RejectionReason {
	return []RejectionReason{InvalidObservation, MissingExternalID, MalformedExternalID, MissingEntity,
		MalformedEntity,
		MissingRevision, MalformedRevision}
}
