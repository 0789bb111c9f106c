package signalrules

import (
	"testing"

	"pgregory.net/rapid"

	"storefront.internal/edge/internal/signaljson"
	"storefront.internal/shared/signal"
)

// The first finding is the reason that Validate gives, and a valid element has no finding but discarded
// fields.
func TestExplainAgreesWithValidate(t *testing.T) {
	t.Parallel()
	values := rapid.SampledFrom([]string{"-", "null", `""`, `"sig_1"`, `"click"`, `"impression"`, `"purchase"`,
		`"update_quantity"`, `"2026-11-21T10:00:00Z"`, `"dec_own1"`, `"dec_2"`, `"itm_1"`, "0", "1", "-1",
		`{}`, `[]`})
	members := []string{"signal_id", "type", "occurred_at", "decision_id", "item_id", "variant_id",
		"position", "quantity", "order_external_id", "visitor", "client"}
	rapid.Check(t, func(t *rapid.T) {
		element := with(rapid.SampledFrom(signal.Types()).Draw(t, "type"),
			rapid.SampledFrom(members).Draw(t, "member"), values.Draw(t, "value"),
			rapid.SampledFrom(members).Draw(t, "another"), values.Draw(t, "its value"))
		var d signaljson.Decoder
		if err := d.Decode([]byte(`{"signals":[` + element + `]}`)); err != nil {
			t.Fatal(err)
		}
		v := New(ownDecisions{}).Validator(&d, "con_1")
		reason := v.Validate(d.Element(0), new(Result))
		got := v.Explain(d.Element(0), new(Result))
		if reason == "" {
			for _, f := range got {
				if f.Code != "discarded_visitor" && f.Code != "discarded_client" {
					t.Errorf("%s is valid and has %+v", element, f)
				}
			}
		} else if len(got) == 0 || got[0].Code != string(reason) {
			t.Errorf("%s is %s, explained by %+v", element, reason, got)
		}
	})
}

func TestEveryReasonHasASentence(t *testing.T) {
	t.Parallel()
	seen := map[string]signal.Reason{}
	for _, r := range Reasons() {
		s := sentence(r)
		if other, twice := seen[s]; twice || s == "" {
			t.Errorf("%s: %q, as %s", r, s, other)
		}
		seen[s] = r
	}
}
