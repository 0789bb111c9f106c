package signalrules

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"storefront.internal/edge/internal/signaljson"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/rfc3339"
	"storefront.internal/shared/signal"
)

// ownDecisions verifies the ids that begin with dec_own.
type ownDecisions struct{}

func (ownDecisions) Verify(c ident.ConnectionID, id string) bool {
	return c == "con_1" && strings.HasPrefix(id, "dec_own")
}

// validate checks one element.
func validate(t testing.TB, element string) (*Result, signal.Reason) {
	t.Helper()
	var d signaljson.Decoder
	if err := d.Decode([]byte(`{"signals":[` + element + `]}`)); err != nil {
		t.Fatalf("%s: %v", element, err)
	}
	out := new(Result)
	v := New(ownDecisions{}).Validator(&d, "con_1")
	return out, v.Validate(d.Element(0), out)
}

// with returns a valid element of the type with members replaced or added; the value "-" removes a member.
func with(kind signal.Type, members ...string) string {
	set := map[string]string{"signal_id": `"sig_1"`, "type": `"` + string(kind) + `"`,
		"occurred_at": `"2026-11-21T10:00:00Z"`, "decision_id": `"dec_own1"`}
	if kind != signal.Impression {
		set["item_id"] = `"itm_1"`
	}
	if kind == signal.UpdateQuantity {
		set["quantity"] = "2"
	}
	for i := 0; i+1 < len(members); i += 2 {
		set[members[i]] = members[i+1]
		if members[i+1] == "-" {
			delete(set, members[i])
		}
	}
	var parts []string
	for name, v := range set {
		parts = append(parts, fmt.Sprintf("%q:%s", name, v))
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}"
}

func TestValidOfEveryType(t *testing.T) {
	for _, kind := range signal.Types() {
		if _, reason := validate(t, with(kind)); reason != "" {
			t.Errorf("%s: %s", kind, reason)
		}
	}
}

// TestReasons has a case for every rule, and meets every reason of the closed set and no other.
func TestReasons(t *testing.T) {
	met := map[signal.Reason]bool{}
	f := func(element string, want signal.Reason) {
		t.Helper()
		met[want] = true
		if _, got := validate(t, element); got != want {
			t.Errorf("%s: got %q, want %q", element, got, want)
		}
	}
	for _, e := range []string{`1`, `"x"`, `null`, `[]`, `true`, `[{}]`} {
		f(e, "invalid_signal")
	}
	f(`{}`, "missing_signal_id")
	identifiers := []string{`1`, `""`, `{}`, `[]`, `true`, `"%s"`, `"%s_"`, `"%s_a b"`, `"%s_ä"`, `"x%s_1"`,
		`"%s_\u0000"`, `"%s_\ud800"`, `"%s_` + strings.Repeat("a", 65) + `"`, `"%s_a\n"`}
	for name, prefix := range map[string]string{"signal_id": "sig", "decision_id": "dec", "item_id": "itm",
		"variant_id": "var"} {
		for _, v := range identifiers {
			f(with(signal.Click, name, strings.ReplaceAll(v, "%s", prefix)), signal.Reason("invalid_"+name))
		}
		if name != "variant_id" {
			f(with(signal.Click, name, "-"), signal.Reason("missing_"+name))
			f(with(signal.Click, name, "null"), signal.Reason("missing_"+name))
		}
	}
	f(with(signal.Click, "type", "-"), "missing_type")
	for _, v := range []string{`"view"`, `"Click"`, `" click"`, `1`, `null`, `"click\u0000"`, `""`} {
		want := signal.Reason("invalid_type")
		if v == "null" {
			want = "missing_type"
		}
		f(with(signal.Click, "type", v), want)
	}
	f(with(signal.Click, "occurred_at", "-"), "missing_occurred_at")
	f(with(signal.Click, "occurred_at", `1700000000`), "invalid_occurred_at")
	f(with(signal.Click, "occurred_at", `"yesterday"`), "invalid_occurred_at")
	// Items.
	f(with(signal.Impression, "item_id", `"itm_1"`), "unexpected_item_id")
	f(with(signal.Impression, "item_id", `17`), "unexpected_item_id")
	f(with(signal.Impression, "item_id", `null`), "")
	for _, kind := range signal.Types() {
		if kind != signal.Impression {
			f(with(kind, "item_id", "-"), "missing_item_id")
		}
	}
	f(with(signal.Impression, "variant_id", `"var_1"`, "position", "3"), "")
	// Numbers.
	for _, v := range []string{`-1`, `100001`, `1.0`, `1e2`, `1.5`, `"1"`, `{}`, `true`,
		`99999999999999999999999`, `-99999999999999999999`, `9223372036854775808`, `4294967296`} {
		f(with(signal.Click, "position", v), "invalid_position")
	}
	for _, v := range []string{`0`, `-0`, `100000`, `null`} {
		f(with(signal.Click, "position", v), "")
	}
	for _, kind := range []signal.Type{signal.AddToCart, signal.Purchase, signal.UpdateQuantity} {
		for _, v := range []string{`-1`, `1000001`, `1.0`, `1e1`, `"1"`, `[]`, `10000000000000000000000`} {
			f(with(kind, "quantity", v), "invalid_quantity")
		}
		f(with(kind, "quantity", `1`), "")
		f(with(kind, "quantity", `1000000`), "")
	}
	f(with(signal.AddToCart, "quantity", `0`), "invalid_quantity")
	f(with(signal.Purchase, "quantity", `0`), "invalid_quantity")
	f(with(signal.UpdateQuantity, "quantity", `0`), "")
	f(with(signal.UpdateQuantity, "quantity", `-`), "missing_quantity")
	f(with(signal.UpdateQuantity, "quantity", `null`), "missing_quantity")
	for _, kind := range []signal.Type{signal.Impression, signal.Click, signal.RemoveFromCart,
		signal.Dismiss} {
		f(with(kind, "quantity", `1`), "unexpected_quantity")
		f(with(kind, "quantity", `"x"`), "unexpected_quantity")
		f(with(kind, "quantity", `null`), "")
	}
	// Orders.
	for _, v := range []string{`""`, `1`, `{}`, `"a\u0000"`, `"\ud800"`, `"` + strings.Repeat("é", 129) +
		`"`} {
		f(with(signal.Purchase, "order_external_id", v), "invalid_order_external_id")
	}
	for _, v := range []string{`" "`, `"№ 7\n\ud83d\ude00"`, `"` + strings.Repeat("é", 128) + `"`, `null`} {
		f(with(signal.Purchase, "order_external_id", v), "")
	}
	for _, kind := range signal.Types() {
		if kind != signal.Purchase {
			f(with(kind, "order_external_id", `"1"`), "unexpected_order_external_id")
			f(with(kind, "order_external_id", `17`), "unexpected_order_external_id")
		}
	}
	f(with(signal.Click, "decision_id", `"dec_other"`), "unknown_decision")
	f(with(signal.Click, "decision_id", `"dec_`+strings.Repeat("A", 64)+`"`), "unknown_decision")
	delete(met, "")
	for _, reason := range Reasons() {
		if !met[reason] {
			t.Errorf("no case meets %s", reason)
		}
		delete(met, reason)
	}
	for reason := range met {
		t.Errorf("%s is not in the closed set", reason)
	}
}

// TestFirstRuleWins breaks all rules from one on: the answer is the reason of the first of them.
func TestFirstRuleWins(t *testing.T) {
	broken := []string{"signal_id", `"x"`, "type", `"x"`, "occurred_at", `"x"`, "decision_id", `"x"`,
		"item_id", `"x"`, "variant_id", `"x"`,
		"position", `"x"`, "quantity", `"x"`, "order_external_id", `""`, "decision_id", `"dec_foreign"`}
	want := []signal.Reason{"invalid_signal_id", "invalid_type", "invalid_occurred_at",
		"invalid_decision_id", "invalid_item_id",
		"invalid_variant_id", "invalid_position", "invalid_quantity", "invalid_order_external_id",
		"unknown_decision"}
	for i := range want {
		members := broken[2*i:]
		if i < 9 {
			members = broken[2*i : 18]
		}
		if _, got := validate(t, with(signal.Purchase, members...)); got != want[i] {
			t.Errorf("from rule %d on: got %s, want %s", i, got, want[i])
		}
	}
}

func TestOccurredAt(t *testing.T) {
	f := func(s, want string) {
		t.Helper()
		out, reason := validate(t, with(signal.Click, "occurred_at", fmt.Sprintf("%q", s)))
		got := ""
		if reason == "" {
			got = string(rfc3339.Append(nil, out.Signal.OccurredAt))
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", s, got, want)
		}
	}
	f("2026-11-21T10:00:00Z", "2026-11-21T10:00:00Z")
	f("2026-11-21T10:00:00+00:00", "2026-11-21T10:00:00Z")
	f("2026-11-21T10:00:00-00:00", "2026-11-21T10:00:00Z")
	f("2026-11-21T10:00:00-03:00", "2026-11-21T13:00:00Z")
	f("2026-11-21T00:30:00+05:45", "2026-11-20T18:45:00Z")
	f("2026-11-21T10:00:00.1Z", "2026-11-21T10:00:00.1Z")
	f("2026-11-21T10:00:00.123456Z", "2026-11-21T10:00:00.123456Z")
	f("2026-11-21T10:00:00.123456999Z", "2026-11-21T10:00:00.123456Z")
	f("2026-11-21T10:00:00."+strings.Repeat("9", 40)+"Z", "2026-11-21T10:00:00.999999Z")
	f("2024-02-29T10:00:00Z", "2024-02-29T10:00:00Z")
	f("2000-02-29T10:00:00Z", "2000-02-29T10:00:00Z")
	f("2000-01-01T00:00:00Z", "2000-01-01T00:00:00Z")
	f("1999-12-31T23:30:00-01:00", "2000-01-01T00:30:00Z")
	f("2099-12-31T23:59:59.9999999Z", "2099-12-31T23:59:59.999999Z")
	for _, s := range []string{"2099-12-31T23:59:59-00:01", "2000-01-01T00:00:00+00:01",
		"1999-12-31T23:59:59Z", "2100-01-01T00:00:00Z", "0000-01-01T00:00:00Z",
		"2026-11-21t10:00:00Z", "2026-11-21T10:00:00z", "2026-11-21 10:00:00Z", "2026-11-21T10:00:00",
		"2026-11-21T10:00Z", "2026-11-21", "",
		"2026-11-21T10:00:60Z", "2026-12-31T23:59:60Z", "2026-11-21T24:00:00Z", "2026-11-21T10:60:00Z",
		"2026-13-01T10:00:00Z", "2026-00-01T10:00:00Z",
		"2026-11-31T10:00:00Z", "2026-11-00T10:00:00Z", "2025-02-29T10:00:00Z", "2100-02-29T10:00:00Z",
		"2026-11-21T10:00:00.Z", "2026-11-21T10:00:00,5Z",
		"2026-11-21T10:00:00+0300", "2026-11-21T10:00:00+03", "2026-11-21T10:00:00+24:00",
		"2026-11-21T10:00:00+03:60", "2026-11-21T10:00:00Z ",
		" 2026-11-21T10:00:00Z", "2026-11-21T10:00:00ZZ", "26-11-21T10:00:00Z", "+2026-11-21T10:00:00Z",
		"2026-1-21T10:00:00Z", "2026-11-21T1:00:00Z"} {
		f(s, "")
	}
}

func TestVisitor(t *testing.T) {
	f := func(visitor, want string) {
		t.Helper()
		out, reason := validate(t, with(signal.Click, "visitor", visitor))
		got := "discarded"
		if !out.DiscardedVisitor {
			b, _ := json.Marshal(out.Signal.Visitor)
			got = string(b)
		} else if out.Signal.Visitor != nil {
			got = "discarded and kept"
		}
		if reason != "" || got != want {
			t.Errorf("%s: %s %s, want %s", visitor, reason, got, want)
		}
	}
	f(`{"visitor_id":"vis_a","session_id":"ses_b"}`, `{"visitor_id":"vis_a","session_id":"ses_b"}`)
	f(`{"visitor_id":"vis_a"}`, `{"visitor_id":"vis_a"}`)
	f(`{"session_id":"ses_b","email":"a@b.example"}`, `{"session_id":"ses_b"}`)
	f(`{"visitor_id":null}`, `null`)
	f(`{}`, `null`)
	f(`null`, `null`)
	f(`{"visitor_id":"vis_123456"}`, `{"visitor_id":"vis_123456"}`)
	f(`{"visitor_id":"vis_1234567890123456"}`, `{"visitor_id":"vis_1234567890123456"}`)
	f(`{"visitor_id":"vis_1234567a"}`, `{"visitor_id":"vis_1234567a"}`)
	for _, v := range []string{`"vis_a"`, `[]`, `1`, `{"visitor_id":"a"}`, `{"visitor_id":1}`,
		`{"visitor_id":"vis_a@b.example"}`, `{"visitor_id":"vis_1234567"}`,
		`{"visitor_id":"vis_123456789012345"}`,
		`{"visitor_id":"vis_a","session_id":"ses_5491144445555"}`, `{"visitor_id":"ses_a"}`,
		`{"visitor_id":"vis_\u0000"}`, `{"visitor_id":"vis_\ud800"}`, `{"visitor_id":""}`,
		`{"visitor_id":"+54 9 11 4444 5555"}`} {
		f(v, "discarded")
	}
}
