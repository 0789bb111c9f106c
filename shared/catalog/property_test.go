package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// A generated document consists of maps, slices, strings, json.Number, bool and nil.
type (
	object  map[string]any
	strange map[string]any // an object that takes no further members: languages, the buyer
)

func texts() *rapid.Generator[string] {
	return rapid.StringOfN(rapid.OneOf(rapid.RuneFrom([]rune("ab{}[]:,\"\\/\b\f\n\r\t\x01\x7f\u2028é€😀 ")),
		rapid.Rune()), 0, 12, -1).
		Filter(func(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") })
}

func externalIDs() *rapid.Generator[string] { return texts().Filter(validExternalID) }

func localized(value *rapid.Generator[string]) *rapid.Generator[any] {
	keys := rapid.SampledFrom([]string{"es", "ES", "en", "pt-BR", "zh-Hans-CN", "und"})
	return rapid.Custom(func(t *rapid.T) any {
		out := strange{}
		for _, key := range rapid.SliceOfNDistinct(keys, 1, 4, rapid.ID).Draw(t, "languages") {
			out[key] = value.Draw(t, "text")
		}
		return out
	})
}

func urls() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"https://a.example/é?b=1", "http://a.example"})
}

// maybe draws an optional member: present, null, or absent.
func maybe[T any](t *rapid.T, o object, name string, g *rapid.Generator[T]) {
	switch rapid.IntRange(0, 3).Draw(t, name+"?") {
	case 0:
	case 1:
		o[name] = nil
	default:
		o[name] = any(g.Draw(t, name))
	}
}

func objects(fill func(t *rapid.T, o object)) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		o := object{}
		fill(t, o)
		return o
	})
}

func lists(g *rapid.Generator[any]) *rapid.Generator[any] {
	return rapid.Map(rapid.SliceOfN(g, 0, 3), func(l []any) any { return l })
}

func monies() *rapid.Generator[any] {
	return objects(func(t *rapid.T, o object) {
		o["amount"] = rapid.StringMatching(`[0-9]{1,6}(\.[0-9]{1,4})?`).Draw(t, "amount")
		o["currency"] = rapid.SampledFrom([]string{"ARS", "USD"}).Draw(t, "currency")
	})
}

func timesOfDay() *rapid.Generator[string] {
	return rapid.StringMatching(`20[0-9]{2}-0[1-9]-1[0-9]T1[0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]0[0-9]:30)`)
}

func integers() *rapid.Generator[json.Number] {
	return rapid.Map(rapid.IntRange(0, 1000), func(n int) json.Number { return json.Number(fmt.Sprint(n)) })
}

func products() *rapid.Generator[any] {
	text := localized(texts())
	media := objects(func(t *rapid.T, o object) {
		o["url"] = urls().Draw(t, "url")
		maybe(t, o, "alt", text)
	})
	return objects(func(t *rapid.T, o object) {
		item := object{"title": text.Draw(t, "title"),
			"status": rapid.SampledFrom([]string{"active", "hidden", "draft"}).Draw(t, "status")}
		for _, name := range []string{"description", "handles"} {
			maybe(t, item, name, text)
		}
		maybe(t, item, "urls", localized(urls()))
		maybe(t, item, "source_version", texts())
		maybe(t, item, "brand", texts())
		maybe(t, item, "primary_media", media)
		maybe(t, item, "media", lists(media))
		maybe(t, item, "tags", lists(rapid.Map(texts(), func(s string) any { return s })))
		maybe(t, item, "free_shipping", rapid.Bool())
		maybe(t, item, "taxonomy", lists(objects(func(t *rapid.T, o object) {
			o["external_id"] = externalIDs().Draw(t, "node")
			maybe(t, o, "name", text)
			maybe(t, o, "handles", text)
		})))
		ids := rapid.SliceOfNDistinct(externalIDs(), 1, 4, rapid.ID).Draw(t, "variants")
		variants := []any{}
		for _, id := range ids {
			v := object{"external_id": id}
			maybe(t, v, "status", rapid.SampledFrom([]string{"active", "hidden"}))
			maybe(t, v, "sku", texts())
			maybe(t, v, "title", text)
			maybe(t, v, "price", monies())
			maybe(t, v, "promotional_price", monies())
			maybe(t, v, "attributes", lists(objects(func(t *rapid.T, o object) {
				o["name"], o["value"] = text.Draw(t, "name"), text.Draw(t, "value")
			})))
			variants = append(variants, v)
		}
		o["item"], o["variants"] = item, variants
		maybe(t, o, "availability", lists(objects(func(t *rapid.T, o object) {
			o["variant_external_id"] = rapid.SampledFrom(ids).Draw(t, "variant")
			maybe(t, o, "sellable", texts())
			maybe(t, o, "as_of", timesOfDay())
			maybe(t, o, "quantity", integers())
		})))
	})
}

func categories() *rapid.Generator[any] {
	return objects(func(t *rapid.T, o object) {
		o["name"] = localized(texts()).Draw(t, "name")
		maybe(t, o, "handles", localized(texts()))
		maybe(t, o, "parent_external_id", externalIDs())
		maybe(t, o, "status", texts())
	})
}

func orders() *rapid.Generator[any] {
	return objects(func(t *rapid.T, o object) {
		maybe(t, o, "number", texts())
		o["status"] = externalIDs().Draw(t, "status")
		maybe(t, o, "payment_status", texts())
		o["currency"], o["total"] = "ARS", monies().Draw(t, "total")
		o["lines"] = lists(objects(func(t *rapid.T, o object) {
			o["item_external_id"] = externalIDs().Draw(t, "item")
			maybe(t, o, "variant_external_id", externalIDs())
			o["quantity"], o["unit_price"] = integers().Draw(t, "quantity"), monies().Draw(t, "price")
		})).Draw(t, "lines")
		o["placed_at"] = timesOfDay().Draw(t, "placed_at")
		maybe(t, o, "buyer", rapid.Map(rapid.MapOfN(texts(), rapid.OneOf(
			rapid.Map(texts(), func(s string) any { return s }),
			rapid.Just[any](nil),
			rapid.Map(integers(), func(n json.Number) any { return n }),
			rapid.Just[any]([]any{true, nil, strange{"b": "x", "a": json.Number("1.50e+2")}}),
		), 0, 5), func(m map[string]any) any { return strange(m) }))
	})
}

func documents(e Entity) *rapid.Generator[any] {
	return map[Entity]*rapid.Generator[any]{Product: products(), Category: categories(), Order: orders()}[e]
}

// render writes a document in one of its many forms: members in any order, any white space, any escapes,
// unknown members.
func render(t *rapid.T, b *bytes.Buffer, v any) {
	space(t, b)
	defer space(t, b)
	switch v := v.(type) {
	case object:
		members := maps.Clone(map[string]any(v))
		if rapid.IntRange(0, 4).Draw(t, "unknown?") == 0 {
			members[rapid.SampledFrom([]string{"x", "item_id", "variant_id", "refresh_revision",
				"Status"}).Draw(t, "unknown")] =
				rapid.SampledFrom([]any{nil, "u", json.Number("1"), []any{}, strange{"a": true}}).Draw(t,
					"value")
		}
		renderMembers(t, b, members)
	case strange:
		renderMembers(t, b, v)
	case []any:
		b.WriteByte('[')
		for i, element := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			render(t, b, element)
		}
		b.WriteByte(']')
	case string:
		quote(t, b, v)
	case nil:
		b.WriteString("null")
	default:
		fmt.Fprint(b, v)
	}
}

func renderMembers(t *rapid.T, b *bytes.Buffer, members map[string]any) {
	b.WriteByte('{')
	for i, name := range rapid.Permutation(slices.Sorted(maps.Keys(members))).Draw(t, "order") {
		if i > 0 {
			b.WriteByte(',')
		}
		space(t, b)
		quote(t, b, name)
		space(t, b)
		b.WriteByte(':')
		render(t, b, members[name])
	}
	b.WriteByte('}')
}

func space(t *rapid.T, b *bytes.Buffer) {
	b.WriteString(rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r\n "}).Draw(t, "space"))
}

func quote(t *rapid.T, b *bytes.Buffer, s string) {
	if !rapid.Bool().Draw(t, "escape") {
		b.Write(appendQuoted(nil, s))
		return
	}
	b.WriteByte('"')
	for _, unit := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(b, `\u%04X`, unit)
	}
	b.WriteByte('"')
}

func TestDigestDependsOnContentAlone(t *testing.T) {
	for _, e := range Entities() {
		t.Run(string(e), rapid.MakeCheck(func(t *rapid.T) {
			var reader Reader
			document := documents(e).Draw(t, "document")
			var digests [2]string
			for i := range digests {
				var b bytes.Buffer
				render(t, &b, document)
				d, violation := ReadDocument(e, b.Bytes())
				if violation != nil {
					t.Fatalf("%v: %s", violation, b.Bytes())
				}
				canonical := Complete(d, example())
				digests[i] = Digest(canonical)
				checkStorable(t, canonical)
				checkIdempotent(t, e, canonical)
				checkCompleted(t, &reader, e, b.Bytes(), canonical)
			}
			if digests[0] != digests[1] {
				t.Fatal("two forms of one document have two digests")
			}
		}))
	}
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkIdempotent reads canonical bytes as a document and completes it again: the same bytes.
func checkIdempotent(t failer, e Entity, canonical []byte) {
	t.Helper()
	d, violation := ReadDocument(e, canonical)
	if violation != nil {
		t.Fatalf("%v in canonical bytes: %s", violation, canonical)
		return
	}
	if again := Complete(d, example()); !bytes.Equal(again, canonical) {
		t.Fatalf("completed once\n%s\ntwice\n%s", canonical, again)
	}
	decoded, err := Decode(e, canonical)
	if err != nil {
		t.Fatalf("%v", err)
		return
	}
	var w writer
	if decoded.write(&w); !bytes.Equal(w.b, canonical) {
		t.Fatalf("stored\n%s\ndecoded and written\n%s", canonical, w.b)
	}
}

// checkStorable checks what PostgreSQL requires of text, json and jsonb.
func checkStorable(t failer, b []byte) {
	t.Helper()
	if !json.Valid(b) || !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		t.Fatalf("cannot be stored: %q", b)
	}
	// neither \u0000 nor half a pair, shallow, no huge number
	if violation := validate(new(jsontext.Decoder), b); violation != nil {
		t.Fatalf("cannot be stored: %v", violation)
	}
}
