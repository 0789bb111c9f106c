package payload

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"storefront.internal/shared/catalog"
)

func decode[T any](t *testing.T, text string) (v T, err error) {
	t.Helper()
	var in struct {
		V T `json:"v"`
	}
	err = json.Unmarshal([]byte(`{"v":`+text+`}`), &in)
	return in.V, err
}

func TestID(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{`1`: "1", `"1"`: "1", `"  a "`: "a", `null`: "", `""`: "",
		`0`: "0", `12345678901234567890123`: "12345678901234567890123"} {
		if got, err := decode[ID](t, text); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{`1.5`, `1e3`, `-1`, `true`, `{}`, `[1]`} {
		if _, err := decode[ID](t, text); err == nil {
			t.Errorf("%s is an id", text)
		}
	}
	if ID("0").IsSet() || ID("").IsSet() || !ID("10").IsSet() {
		t.Error("0 says none")
	}
}

func TestCountAndFlag(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{`5`: "5", `"5"`: "5", `" -3 "`: "-3", `0`: "0",
		`"12.0000"`: "12", `2.0`: "2", `2.5`: "unknown", `null`: "unknown", `""`: "unknown", `"x"`: "unknown",
		`true`: "unknown", `{}`: "unknown", `1e400`: "unknown", `9007199254740993`: "unknown",
		`99999999999999999999`: "unknown"} {
		c, err := decode[Count](t, text)
		got := "unknown"
		if q := c.Quantity(); q != nil {
			got = fmt.Sprint(*q)
		}
		if err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for text, want := range map[string]Flag{`true`: {true, true}, `"true"`: {true, true}, `1`: {true, true},
		`"1"`: {true, true}, `false`: {true, false}, `0`: {true, false}, `"no"`: {true, false},
		`null`: {}, `"parent"`: {}, `[]`: {}, `""`: {}} {
		if got, err := decode[Flag](t, text); err != nil || got != want ||
			(got.Pointer() == nil) == want.Known {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestAmount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{`"10.00"`: "10.00", `10.50`: "10.50", `10`: "10", `" 5 "`: "5",
		`"0"`: "0", `null`: "", `""`: "", `[]`: "", `false`: ""} {
		got, err := decode[Amount](t, text)
		if err != nil || string(got) != want || (got.Money("ARS") == nil) != (want == "") ||
			got.Money("") != nil {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	for pair, want := range map[[2]Amount]bool{{"10", "9.99"}: true, {"1000.00", "999.99"}: true,
		{"9", "10"}: false, {"10.0", "10.00"}: false, {"", "1"}: false, {"1", ""}: false,
		{"x", "1"}: false, {"1e9", "1"}: false, {"-1", "-2"}: false, {"1..2", "1"}: false} {
		if got := pair[0].Exceeds(pair[1]); got != want {
			t.Errorf("%s exceeds %s: %v", pair[0], pair[1], got)
		}
	}
	for amount, want := range map[Amount]Amount{"16.666666666666668": "16.6666666667", "1.5": "1.5",
		"10": "10", "1.00000000000001": "1", "x.123456789012345": "x.123456789012345", "": ""} {
		if got := amount.Rounded(); got != want {
			t.Errorf("%s rounds to %s", amount, got)
		}
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{`{"es":"a","pt_BR":"b","en":null}`: "map[es:a pt-BR:b]",
		`"a"`: "map[es-AR:a]", `""`: "map[es-AR:]", `{}`: "map[]", `[]`: "map[]", `null`: "map[]",
		`{"es":7}`: "map[es:7]", `5`: "map[]", `{"no language!":"x"}`: "map[und:x]", `false`: "map[]"} {
		got, err := decode[Texts](t, text)
		if err != nil || fmt.Sprint(map[string]string(got.In("es_AR"))) != want {
			t.Errorf("%s: %v, %v", text, got.In("es_AR"), err)
		}
	}
	for locale, want := range map[string]string{"es": "es", "pt_BR": "pt-BR", "de_DE_formal": "de-DE-formal",
		"en_US.UTF-8": "en-US", " fr ": "fr", "": "und", "x": "und", "C": "und", "12": "und", "en_": "und",
		"en-verylongpart": "und", "toolonglanguage": "und", "é": "und",
		strings.Repeat("en-", 20) + "x": "und", "zh-Hant-TW": "zh-Hant-TW"} {
		if got := Language(locale); got != want {
			t.Errorf("%q: %q", locale, got)
		}
	}
}

func TestTime(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"2026-02-03T04:05:06-03:00"`:      "2026-02-03T07:05:06Z",
		`"2026-02-03T04:05:06-0300"`:       "2026-02-03T07:05:06Z",
		`"2026-02-03T04:05:06+0000"`:       "2026-02-03T04:05:06Z",
		`"2026-02-03T04:05:06Z"`:           "2026-02-03T04:05:06Z",
		`"2026-02-03T04:05:06.123456789Z"`: "2026-02-03T04:05:06.123456Z",
		`"2026-02-03T04:05:06"`:            "2026-02-03T04:05:06Z",
		`"2026-02-03 04:05:06"`:            "2026-02-03T04:05:06Z",
		`"2026-02-03 04:05:06+0000"`:       "2026-02-03T04:05:06Z",
		`{"date":"2026-02-03 04:05:06.000000","timezone_type":3,` +
			`"timezone":"UTC"}`: "2026-02-03T04:05:06Z",
		`{"date":"2026-02-03 04:05:06.000000","timezone_type":3,` +
			`"timezone":"America/Argentina/Buenos_Aires"}`: "2026-02-03T07:05:06Z",
		`{"date":"2026-02-03 04:05:06.000000","timezone_type":1,` +
			`"timezone":"-03:00"}`: "2026-02-03T07:05:06Z",
		`{"date":"2026-02-03 04:05:06.000000",` +
			`"timezone":"../../etc/passwd"}`: "2026-02-03T04:05:06Z",
		`null`: "", `""`: "", `"yesterday"`: "yesterday", `"0000-00-00 00:00:00"`: "0000-00-00 00:00:00",
		`[]`: "", `false`: "", `"0001-01-01T00:00:00"`: "",
	} {
		got, err := decode[Time](t, text)
		if err != nil || got.Version() != want {
			t.Errorf("%s: %q, %v", text, got.Version(), err)
		}
		if !got.IsZero() && got.Location() != time.UTC {
			t.Errorf("%s: zone %v", text, got.Location())
		}
	}
}

func TestLinksAndTags(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"https://a.org/x.jpg": "https://a.org/x.jpg",
		"//a.org/x": "https://a.org/x", " http://a.org/a b?c d ": "http://a.org/a%20b?c%20d",
		"https://a.org/ñ": "https://a.org/%C3%B1",
		"":                "", "/x.jpg": "", "x.jpg": "", "data:image/png;base64,x": "", "javascript:1": "",
		"https://u:p@a.org/": "", "https://": "", "ftp://a.org/": "",
		"https://a.org/" + strings.Repeat("x", 3000): "", "https://a.org/\x00": ""} {
		if got := Link(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	for text, want := range map[string]string{"a, b,,a , c": "a|b|c", "": "", " , ": "", "uno": "uno"} {
		if got := Tags(text); strings.Join(got, "|") != want || got == nil {
			t.Errorf("%q: %q", text, got)
		}
	}
	if media, primary := Media(nil); media != nil || primary != nil {
		t.Error("no pictures said is not none")
	}
	if media, primary := Media([]Picture{{URL: "x"}}); media == nil || len(media) != 0 || primary != nil {
		t.Error("pictures that cannot be loaded")
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	var v struct {
		A struct {
			B []int `json:"b"`
		} `json:"a"`
	}
	for text, want := range map[string]error{`{"a":{"b":[1]}}`: nil, `{"a":`: ErrJSON, ``: ErrJSON,
		`{} x`: ErrJSON, `{"a":{"b":"secret"}}`: ErrShape, `[]`: ErrShape} {
		err := Decode([]byte(text), &v)
		if !errors.Is(err, want) || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := Decode([]byte(`{"a":{"b":"x"}}`), &v); err == nil || err.Error() != "wrong_type at /a/b" {
		t.Errorf("%v", err)
	}
	if Buyer(map[string]string{"a": ""}) != nil ||
		string(Buyer(map[string]string{"b": "x<", "a": "y"})) == "" {
		t.Error("buyer")
	}
}

// FuzzScalars decodes any JSON value into each type without a panic, and yields only what the catalog
// accepts.
func FuzzScalars(f *testing.F) {
	for _, text := range []string{`"2026-02-03T04:05:06+0000"`, `{"date":"x","timezone":"y"}`, `1e99999`,
		`{"es":"x"}`, `"\ud800"`, `[]`, `"1.5"`, `"https://a.org/x y"`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		b := []byte(strings.TrimSpace(text))
		_ = json.Unmarshal(b, new(ID))
		_ = json.Unmarshal(b, new(Count))
		_ = json.Unmarshal(b, new(Flag))
		var (
			when  Time
			texts Texts
			word  Text
			a     Amount
		)
		if json.Unmarshal(b, &when) == nil && !when.IsZero() && (when.Year() < 1000 || when.Year() > 9999) {
			t.Errorf("year %d", when.Year())
		}
		if json.Unmarshal(b, &a) == nil {
			_, _ = a.Rounded(), a.Exceeds("1")
		}
		if json.Unmarshal(b, &texts) != nil || json.Unmarshal(b, &word) != nil {
			return
		}
		d := &catalog.CatalogAggregate{Item: catalog.Item{Title: texts.In(string(word)),
			Status: catalog.Active, URLs: Localized(string(word), Link(string(word)))},
			Variants: []catalog.Variant{{ExternalID: "1"}}}
		stored := catalog.Complete(d,
			catalog.Identity{ConnectionID: "con_1", StoreID: "str_1", ExternalID: "1", Revision: 1})
		if _, violation := catalog.ReadDocument(catalog.Product, stored); violation != nil &&
			(violation.Rule == catalog.InvalidLanguage || violation.Rule == catalog.InvalidURL) {
			t.Errorf("%s: %v", text, violation)
		}
	})
}
