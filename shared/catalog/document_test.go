package catalog

import (
	"strings"
	"testing"
)

const (
	soundProduct = `{"item":{"title":{"es":"Remera","pt-BR":"Camiseta","en":"T-shirt"},"status":"active","source_version":"7",
		"primary_media":{"url":"https://cdn.example.com/1.jpg","alt":{"es":"Frente"}},"description":{"es":"<p>De algodón</p>"},
		"handles":{"es":"remera"},"urls":{"es":"https://store.example.com/remera?x=1#top"},
		"media":[{"url":"https://cdn.example.com/1.jpg"},{"url":"http://cdn.example.com/2.jpg","alt":{"en":"Back"}}],
		"brand":"Marca","tags":["algodón","verano"],"free_shipping":false,
		"taxonomy":[{"external_id":"c1","name":{"es":"Ropa"},"handles":{"es":"ropa"}},{"external_id":"c2"}]},
		"variants":[{"external_id":"v1","status":"active","sku":"R-1","title":{"es":"Roja"},
		"price":{"amount":"1500.00","currency":"ARS"},"promotional_price":{"amount":"1200","currency":"ARS"},
		"attributes":[{"name":{"es":"Color"},"value":{"es":"Rojo"}}]},{"external_id":"v2","status":"hidden"}],
		"availability":[{"variant_external_id":"v2","sellable":"published","as_of":"2026-01-02T03:04:05.678-03:00","quantity":0},
		{"variant_external_id":"v1","sellable":"unpublished"}],"refresh_revision":1}`
	soundOrder = `{"number":1001,"status":"open","payment_status":"paid","currency":"ARS","total":{"amount":"3000.50","currency":"ARS"},
		"lines":[{"item_external_id":"p1","variant_external_id":"v1","quantity":2,"unit_price":{"amount":"1500.00","currency":"ARS"}},
		{"item_external_id":"p2","quantity":1,"unit_price":{"amount":"0.50","currency":"ARS"}}],
		"placed_at":"2026-01-02T03:04:05Z","buyer":{"name":"Ana","email":"ana@example.com","phones":["1",null],"vip":true,"none":null}}`
	fullCategory = `{"name":{"es":"Remeras","en":"T-shirts"},"handles":{"es":"remeras"},"parent_external_id":"c1","status":"visible"}`
)

// change replaces the first occurrence, which must be there.
func change(t *testing.T, text, from, to string) string {
	t.Helper()
	if !strings.Contains(text, from) {
		t.Fatalf("%s is not in the document", from)
	}
	return strings.Replace(text, from, to, 1)
}

type violationCase struct{ from, to, want string }

func productViolations() []violationCase {
	long, huge := strings.Repeat("a", 1025), strings.Repeat("a", 1<<20+1)
	return []violationCase{
		{`{"item"`, `{"ITEM"`, "missing at /item"},
		{`"item":{`, `"item":null,"x":{`, "missing at /item"},
		{`"item":{`, `"item":[],"x":{`, "wrong_type at /item"},
		{`"title":{"es":"Remera"`, `"x":{"es":"Remera"`, "missing at /item/title"},
		{`"title":{"es":"Remera"`, `"title":"Remera","x":{"es":"Remera"`, "wrong_type at /item/title"},
		{`"title":{"es":"Remera"`, `"title":{},"x":{"es":"Remera"`, "too_few at /item/title"},
		{`"title":{"es":"Remera"`, `"title":{"es":null},"x":{"es":"Remera"`, "too_few at /item/title"},
		{`"es":"Remera"`, `"es":1`, "wrong_type at /item/title/es"},
		{`"es":"Remera"`, `"es":["a"]`, "wrong_type at /item/title/es"},
		{`"es":"Remera"`, `"":"Remera"`, "invalid_language at /item/title/"},
		{`"es":"Remera"`, `"pt_BR":"Remera"`, "invalid_language at /item/title/pt_BR"},
		{`"es":"Remera"`, `"e\u0001":"Remera"`, "invalid_language at /item/title"},
		{`"es":"Remera"`, `"a/b":"Remera"`, "invalid_language at /item/title/a~1b"},
		{`"es":"Remera"`, `"es":"` + huge + `"`, "too_long at /item/title/es"},
		{`"status":"active"`, `"x":1`, "missing at /item/status"},
		{`"status":"active"`, `"status":"deleted"`, "invalid_status at /item/status"},
		{`"status":"active"`, `"status":"Active"`, "invalid_status at /item/status"},
		{`"status":"active"`, `"status":""`, "invalid_status at /item/status"},
		{`"status":"active"`, `"status":true`, "invalid_status at /item/status"},
		{`"source_version":"7"`, `"source_version":7`, "wrong_type at /item/source_version"},
		{`"source_version":"7"`, `"source_version":"` + long + `"`, "too_long at /item/source_version"},
		{`"primary_media":{`, `"primary_media":"x","x":{`, "wrong_type at /item/primary_media"},
		{`"primary_media":{"url"`, `"primary_media":{"src"`, "missing at /item/primary_media/url"},
		{`https://cdn.example.com/1.jpg`, `//cdn.example.com/1.jpg`,
			"invalid_url at /item/primary_media/url"},
		{`"alt":{"es":"Frente"}`, `"alt":{}`, "too_few at /item/primary_media/alt"},
		{`"description":{"es"`, `"description":{"1"`, "invalid_language at /item/description/1"},
		{`"handles":{"es":"remera"}`, `"handles":["remera"]`, "wrong_type at /item/handles"},
		{`https://store.example.com/remera?x=1#top`, `ftp://store.example.com/`,
			"invalid_url at /item/urls/es"},
		{`"urls":{"es":"`, `"urls":{"es":"` + strings.Repeat("a", 2048), "too_long at /item/urls/es"},
		{`http://cdn.example.com/2.jpg`, `javascript:alert(1)`, "invalid_url at /item/media/1/url"},
		{`"media":[`, `"media":{},"x":[`, "wrong_type at /item/media"},
		{`"media":[`, `"media":[null,`, "wrong_type at /item/media/0"},
		{`"brand":"Marca"`, `"brand":["Marca"]`, "wrong_type at /item/brand"},
		{`"tags":["algodón"`, `"tags":["a",1`, "wrong_type at /item/tags/1"},
		{`"tags":["algodón","verano"]`, `"tags":"algodón,verano"`, "wrong_type at /item/tags"},
		{`"tags":[`, `"tags":[` + strings.Repeat(`"a",`, 1000), "too_many at /item/tags"},
		{`"free_shipping":false`, `"free_shipping":"false"`, "wrong_type at /item/free_shipping"},
		{`{"external_id":"c2"}`, `{"taxonomy_id":"tax_1"}`, "missing at /item/taxonomy/1/external_id"},
		{`{"external_id":"c2"}`, `{"external_id":2}`, "invalid_external_id at /item/taxonomy/1/external_id"},
		{`{"external_id":"c2"}`, `"c2"`, "wrong_type at /item/taxonomy/1"},
		{`"name":{"es":"Ropa"}`, `"name":"Ropa"`, "wrong_type at /item/taxonomy/0/name"},
		{`"variants":[`, `"x":[`, "missing at /variants"},
		{`"variants":[`, `"variants":{},"x":[`, "wrong_type at /variants"},
		{`"variants":[`, `"variants":[],"x":[`, "too_few at /variants"},
		{`"variants":[`, `"variants":[1,`, "wrong_type at /variants/0"},
		{`"external_id":"v1"`, `"variant_id":"var_1"`, "missing at /variants/0/external_id"},
		{`"external_id":"v1"`, `"external_id":""`, "invalid_external_id at /variants/0/external_id"},
		{`"external_id":"v1"`, `"external_id":"` + strings.Repeat("a", 513) + `"`,
			"invalid_external_id at /variants/0/external_id"},
		{`"external_id":"v2"`, `"external_id":"v1"`, "duplicate_external_id at /variants/1/external_id"},
		{`"status":"hidden"`, `"status":"draft"`, "invalid_status at /variants/1/status"},
		{`"sku":"R-1"`, `"sku":1`, "wrong_type at /variants/0/sku"},
		{`"title":{"es":"Roja"}`, `"title":{}`, "too_few at /variants/0/title"},
		{`"price":{"amount":"1500.00","currency":"ARS"}`, `"price":"1500.00"`,
			"wrong_type at /variants/0/price"},
		{`"price":{"amount":"1500.00"`, `"price":{"x":1`, "missing at /variants/0/price/amount"},
		{`"amount":"1500.00","currency":"ARS"`, `"amount":"1500.00"`,
			"missing at /variants/0/price/currency"},
		{`"amount":"1500.00"`, `"amount":1500.00`, "invalid_amount at /variants/0/price/amount"},
		{`"amount":"1500.00","currency":"ARS"`, `"amount":"1","currency":"ars"`,
			"invalid_currency at /variants/0/price/currency"},
		{`"amount":"1200"`, `"amount":"1.200,00"`, "invalid_amount at /variants/0/promotional_price/amount"},
		{`{"name":{"es":"Color"},"value":{"es":"Rojo"}}`, `{"name":{"es":"Color"}}`,
			"missing at /variants/0/attributes/0/value"},
		{`{"name":{"es":"Color"},`, `{`, "missing at /variants/0/attributes/0/name"},
		{`"availability":[`, `"availability":{},"x":[`, "wrong_type at /availability"},
		{`"availability":[`, `"availability":[true,`, "wrong_type at /availability/0"},
		{`"variant_external_id":"v2"`, `"variant_external_id":"v3"`,
			"unknown_variant at /availability/0/variant_external_id"},
		{`"variant_external_id":"v2"`, `"variant_external_id":2`,
			"invalid_external_id at /availability/0/variant_external_id"},
		{`"variant_external_id":"v2"`, `"variant_id":"var_unknown"`,
			"missing at /availability/0/variant_external_id"},
		{`"sellable":"published"`, `"sellable":true`, "wrong_type at /availability/0/sellable"},
		{`"as_of":"2026-01-02T03`, `"as_of":"2026-01-02 03`, "invalid_time at /availability/0/as_of"},
		{`"quantity":0`, `"quantity":0.0`, "invalid_quantity at /availability/0/quantity"},
		{`"quantity":0`, `"quantity":"0"`, "invalid_quantity at /availability/0/quantity"},
		{`"quantity":0`, `"quantity":9007199254740992`, "invalid_quantity at /availability/0/quantity"},
		{`"refresh_revision":1}`, `"x":"\u0000"}`, "nul_character at /x"},
		{`"refresh_revision":1}`, `"refresh_revision":1`, "invalid_json"},
		{`"refresh_revision":1}`, `"x":"` + strings.Repeat("a", MaxDocument) + `"}`, "too_large"},
	}
}

func orderViolations() []violationCase {
	return []violationCase{
		{`"number":1001`, `"number":1001.5`, "invalid_number at /number"},
		{`"number":1001`, `"number":true`, "invalid_number at /number"},
		{`"status":"open"`, `"x":1`, "missing at /status"},
		{`"status":"open"`, `"status":""`, "invalid_status at /status"},
		{`"payment_status":"paid"`, `"payment_status":1`, "invalid_status at /payment_status"},
		{`"currency":"ARS","total"`, `"total"`, "missing at /currency"},
		{`"currency":"ARS"`, `"currency":"XXX"`, "invalid_currency at /currency"},
		{`"total":{`, `"x":{`, "missing at /total"},
		{`"3000.50"`, `"-3000.50"`, "invalid_amount at /total/amount"},
		{`"lines":[`, `"x":[`, "missing at /lines"},
		{`"lines":[`, `"lines":{},"x":[`, "wrong_type at /lines"},
		{`"lines":[`, `"lines":[1,`, "wrong_type at /lines/0"},
		{`"item_external_id":"p1"`, `"x":1`, "missing at /lines/0/item_external_id"},
		{`"item_external_id":"p1"`, `"item_external_id":1`,
			"invalid_external_id at /lines/0/item_external_id"},
		{`"variant_external_id":"v1"`, `"variant_external_id":""`,
			"invalid_external_id at /lines/0/variant_external_id"},
		{`"quantity":2`, `"x":2`, "missing at /lines/0/quantity"},
		{`"quantity":2`, `"quantity":-1`, "invalid_quantity at /lines/0/quantity"},
		{`"quantity":1`, `"quantity":1e0`, "invalid_quantity at /lines/1/quantity"},
		{`"unit_price":{"amount":"1500.00"`, `"x":{"amount":"1"`, "missing at /lines/0/unit_price"},
		{`"0.50"`, `".50"`, "invalid_amount at /lines/1/unit_price/amount"},
		{`"placed_at"`, `"x"`, "missing at /placed_at"},
		{`03:04:05Z`, `03:04:60Z`, "invalid_time at /placed_at"},
		{`"buyer":{`, `"buyer":"Ana","x":{`, "wrong_type at /buyer"},
		{`"email":"`, `"email":"` + strings.Repeat("a", 64<<10), "too_large at /buyer"},
	}
}

func categoryViolations() []violationCase {
	return []violationCase{
		{`"name":{`, `"x":{`, "missing at /name"},
		{`"name":{"es":"Remeras","en":"T-shirts"}`, `"name":{}`, "too_few at /name"},
		{`"handles":{"es":"remeras"}`, `"handles":{"es":{}}`, "wrong_type at /handles/es"},
		{`"parent_external_id":"c1"`, `"parent_external_id":1`, "invalid_external_id at /parent_external_id"},
		{`"status":"visible"`, `"status":{}`, "invalid_status at /status"},
	}
}

func TestViolationsOfDocuments(t *testing.T) {
	f := func(e Entity, sound string, cases []violationCase) {
		if _, violation := ReadDocument(e, []byte(sound)); violation != nil {
			t.Errorf("the sound %s: %v", e, violation)
		}
		for _, c := range cases {
			_, violation := ReadDocument(e, []byte(change(t, sound, c.from, c.to)))
			if violation == nil || violation.String() != c.want {
				t.Errorf("%s with %.80s: %v, want %s", e, c.to, violation, c.want)
			}
		}
	}
	f(Product, soundProduct, productViolations())
	f(Order, soundOrder, orderViolations())
	f(Category, fullCategory, categoryViolations())
}

func TestEveryRuleHasACase(t *testing.T) {
	// TestQuarantine covers the rules of elements and of parsing.
	covered := map[Rule]bool{TooDeep: true, DuplicateName: true, LoneSurrogate: true, HugeExponent: true,
		InvalidOperation: true, MissingDocument: true, UnexpectedDocument: true}
	for _, c := range append(append(productViolations(), orderViolations()...), categoryViolations()...) {
		rule, _, _ := strings.Cut(c.want, " ")
		covered[Rule(rule)] = true
	}
	for _, rule := range allRules() {
		if !covered[rule] {
			t.Errorf("no case for %s", rule)
		}
		delete(covered, rule)
	}
	for rule := range covered {
		t.Errorf("%s is not in the closed set", rule)
	}
}

func TestBoundedLists(t *testing.T) {
	f := func(from, to, want string) {
		t.Helper()
		_, violation := ReadDocument(Product, []byte(change(t, soundProduct, from, to)))
		if (violation == nil) != (want == "") || violation != nil && violation.String() != want {
			t.Errorf("%.40s: %v, want %q", to, violation, want)
		}
	}
	languages := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(`"aa-` + string(rune('a'+i/26)) + string(rune('a'+i%26)) + `":"",`)
		}
		return b.String()
	}
	f(`"title":{`, `"title":{`+languages(maxLanguages-3), "")
	f(`"title":{`, `"title":{`+languages(maxLanguages), "too_many at /item/title")
	available := `"availability":[` + strings.Repeat(`{"variant_external_id":"v1"},`, maxAvailable-2)
	f(`"availability":[`, available, "")
	f(`"availability":[`, available+`{"variant_external_id":"v1"},`, "too_many at /availability")
}

func TestForms(t *testing.T) {
	f := func(name string, valid func(string) bool, sound, broken []string) {
		for _, s := range sound {
			if !valid(s) {
				t.Errorf("%s %q is sound", name, s)
			}
		}
		for _, s := range broken {
			if valid(s) {
				t.Errorf("%s %q is not sound", name, s)
			}
		}
	}
	f("language", ValidLanguage, []string{"es", "pt-BR", "zh-Hans-CN", "es-419", "x-default", "i-klingon",
		"und", "PT-br", "de-1996"},
		[]string{"", "e", "x", "es-", "-es", "es--AR", "es_AR", "e1", "123", "é", "es AR", "abcdefghi",
			"es-abcdefghi", "q-abc",
			"es-AR\n", strings.Repeat("ab-", 12) + "ab", "not a language", "es-é"})
	f("amount", validAmount, []string{"0", "1", "10.5", "0010.00", "999999999999999999.9999999999"},
		[]string{"", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", " 1", "1 ", "1.2.3", "0x1", "NaN",
			"Infinity", "١",
			strings.Repeat("9", 19), "1." + strings.Repeat("1", 11)})
	f("currency", validCurrency, []string{"USD", "ARS", "BRL", "EUR", "AED", "ZWG"},
		[]string{"", "US", "usd", "USDX", "XXX", "ZZZ", "SD ", "D A", " AF", "DZD ", "€"})
	f("url", validURL, []string{"https://a", "http://a.b/c?d=e#f", "HTTPS://a", "https://[::1]:8080/",
		"https://ñandú.example/ñ", "https://a/%20"},
		[]string{"", "a", "//a/b", "/a", "ftp://a", "https://", "https:///a", "https://:80", "https://u:p@a",
			"https://u@a",
			"https://a b", "https://a\n", "javascript:alert(1)", "data:,a", "https://a/%zz", "mailto:a@b.c"})
	f("time", func(s string) bool { _, ok := parseTime(s); return ok },
		[]string{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456789012Z", "2024-02-29T23:59:59+14:00",
			"2026-01-02T03:04:05-00:00"},
		[]string{"", "2026-01-02", "2026-01-02T03:04:05", "2026-01-02t03:04:05Z", "2026-01-02T03:04:05z",
			"2026-01-02 03:04:05Z",
			"2026-01-02T3:04:05Z", "2026-01-02T03:04:05,1Z", "2026-01-02T03:04:05.Z",
			"2026-01-02T03:04:05+0000", "2026-01-02T03:04:05+24:00",
			"2026-01-02T03:04:05+00:60", "2026-01-02T24:00:00Z", "2026-01-02T03:04:60Z",
			"2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
			"0001-01-01T00:00:00Z", "9999-12-31T23:59:59-01:00", "+2026-01-02T03:04:05Z",
			"2026-01-02T03:04:05.1.2Z", "2026-01-02T03:04:05Z ",
			"2026-01-02T03:04:05." + strings.Repeat("1", 60) + "Z", "20a6-01-02T03:04:05Z"})
}

// allRules lists all rules.
func allRules() []Rule {
	return []Rule{InvalidJSON, TooDeep, DuplicateName, NULCharacter, LoneSurrogate, HugeExponent,
		InvalidOperation, MissingDocument, UnexpectedDocument,
		Missing, WrongType, TooLarge, TooLong, TooMany, TooFew, InvalidStatus, InvalidLanguage, InvalidAmount,
		InvalidCurrency, InvalidURL, InvalidTime, InvalidQuantity, InvalidNumber, InvalidExternalID,
		DuplicateExternalID, UnknownVariant}
}
