package catalog

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"storefront.internal/shared/fault"
)

// FuzzSplit compares with encoding/json: what is JSON, and where values begin and end.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{
		`{"observations":[{"external_id":"a","entity":"product","revision":1,"document":` + soundProduct +
			`,"raw":[1, {"b":"\u00e9"}]}]}`,
		`{"observations":[{"external_id":"a","entity":"order","revision":2,"document":` + soundOrder +
			`,"raw":null},1,"x",[]]}`,
		` {"x":[[[]]], "\u006fbservations" : [ { "raw" : -1.5e+3 , "document":{} } , {} ] } `,
		`{"observations":[{"raw":"\ud83d\ude00","\u0072aw":1,"document":null,"entity":"category"}]}`,
		`{"observations":[],"observations":null}`, `{"observations":[1]}]`, `[]`, "",
		`{"observations":[` + strings.Repeat("[", 40) + "]}",
		`{"observations":[` + strings.Repeat("1,", 600) + `1]}`, "{\"observations\":[\"\xff\"]}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		elements, err := Split(body)
		// encoding/json has a bound of its own
		deep := bytes.Count(body, []byte("["))+bytes.Count(body, []byte("{")) > 9000
		sound := utf8.Valid(body) && json.Valid(body)
		if refused := err != nil && fault.Is(err, fault.InvalidRequest) &&
			fault.From(err).Fields[0].Code == "invalid_json"; refused == sound && !deep {
			t.Fatalf("Split: %v; encoding/json: %v", err, sound)
		}
		if err != nil || deep {
			return
		}
		var reference map[string]json.RawMessage
		var spans []json.RawMessage
		if json.Unmarshal(body, &reference) != nil {
			t.Fatal("no object was split")
		}
		if err := json.Unmarshal(reference["observations"], &spans); err == nil && spans != nil &&
			len(spans) != len(elements) {
			t.Fatalf("%d elements, encoding/json finds %d", len(elements), len(spans))
		}
		for i, element := range elements {
			if spans != nil && !bytes.Equal(element, spans[i]) {
				t.Fatalf("element %d: %q, encoding/json finds %q", i, element, spans[i])
			}
			checkObservation(t, element)
		}
	})
}

func checkObservation(t *testing.T, element []byte) {
	o := readObservation(element)
	if o.Rejected != "" {
		if o.Quarantined != nil || o.Completed.Document != nil {
			t.Fatalf("two outcomes of %q", element)
		}
		return
	}
	if (o.Quarantined == nil && o.Operation == Upsert) != (o.Completed.Document != nil) {
		t.Fatalf("content and outcome of %q: %v", element, o.Quarantined)
	}
	if s := o.ExternalID; s == "" || !utf8.ValidString(s) || strings.Contains(s, "\x00") {
		t.Fatalf("external id %q", s)
	}
	if o.Quarantined != nil {
		if s := o.Quarantined.String(); !utf8.ValidString(s) || strings.Contains(s, "\x00") || len(s) > 8192 {
			t.Fatalf("reason %q", s)
		}
		if o.Quarantined.Rule == DuplicateName {
			return // which of the two encoding/json takes is no matter
		}
	}
	var reference map[string]json.RawMessage
	if err := json.Unmarshal(element, &reference); err != nil {
		t.Fatal(err)
	}
	if string(reference["document"]) == "null" {
		delete(reference, "document")
	}
	if !bytes.Equal(o.Raw, reference["raw"]) || !bytes.Equal(o.Document, reference["document"]) {
		t.Fatalf("spans of %q: raw %q document %q", element, o.Raw, o.Document)
	}
}

// FuzzDocument: an accepted document can be stored, and is the same when it is delivered again.
func FuzzDocument(f *testing.F) {
	for i, sound := range []string{soundProduct, fullCategory, soundOrder} {
		f.Add(i, []byte(sound))
	}
	for _, c := range productViolations() {
		if len(c.to) < 1000 {
			f.Add(0, []byte(strings.Replace(soundProduct, c.from, c.to, 1)))
		}
	}
	for _, c := range orderViolations() {
		if len(c.to) < 1000 {
			f.Add(2, []byte(strings.Replace(soundOrder, c.from, c.to, 1)))
		}
	}
	f.Add(1, []byte(`{"name":{"es":"\ud83d\ude00\u2028\u007f"},"status":""}`))
	f.Add(1, []byte("{\"name\":{\"es\":\"\xed\xa0\x80\"}}"))
	f.Fuzz(func(t *testing.T, kind int, text []byte) {
		e := Entities()[uint(kind)%3]
		d, violation := ReadDocument(e, text)
		if violation != nil {
			if d != nil || !utf8.ValidString(violation.String()) ||
				strings.Contains(violation.String(), "\x00") {
				t.Fatalf("violation %q, document %v", violation, d)
			}
			return
		}
		canonical := Complete(d, example())
		checkStorable(t, canonical)
		checkIdempotent(t, e, canonical)
	})
}
