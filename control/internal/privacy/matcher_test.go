package privacy

import (
	"strings"
	"testing"
)

func TestWhatContainsACustomer(t *testing.T) {
	t.Parallel()
	ana := customer{ID: "7", Email: "Ana@gmail.com", Phone: "+54 11 5000", Identification: "30123456"}
	joe := customer{Email: "joe@gmail.co"}
	begoña := customer{Email: "Begoña@Peña.example"}
	for _, c := range []struct {
		who  customer
		body string
		want bool
	}{
		{ana, `{"email":"ANA@gmail.com"}`, true},
		{ana, `{"ana@gmail.com":true}`, true},
		{ana, `{"note":"ring me:\nana@gmail.com."}`, true},
		{ana, `{"note":"<ana@gmail.com>, at noon"}`, true},
		{ana, `{"note":"邮箱ana@gmail.com或电话"}`, true},
		{ana, `{"url":"https:\/\/shop.example\/?email=ana%40gmail.com&x=1"}`, true},
		{ana, "{\"id\":1}\n{\"email\":\"ana@gmail.com\"}", true},
		{ana, `not JSON: ana@gmail.com`, true},
		{ana, `{"email":"mariana@gmail.com"}`, false},
		{ana, `{"email":"juli.ana@gmail.com"}`, false},
		{ana, `{"email":"x+ana@gmail.com"}`, false},
		{ana, `{"email":"x-ana@gmail.com"}`, false},
		{ana, `{"email":"ñana@gmail.com"}`, false},
		{ana, `{"url":"?email=mari%2Dana%40gmail.com"}`, false},
		{ana, `not JSON: mariana@gmail.com`, false},
		{ana, `{"emails":["mariana@gmail.com","ana@gmail.com"]}`, true},
		{ana, `{"note":"mariana@gmail.com ana@gmail.com"}`, true},
		{ana, `{"phone":"+54 11 5000"}`, true},
		{ana, `{"phone":"+54 11 50001"}`, false},
		{ana, `{"note":"call +54 11 5000"}`, false},
		{ana, `{"identification":"30123456"}`, true},
		{ana, `{"sku":30123456}`, false},
		{ana, `{"id":"7"}`, false},
		{joe, `{"email":"joe@gmail.co"}`, true},
		{joe, `{"note":"joe@gmail.co. Thanks"}`, true},
		{joe, `{"email":"joe@gmail.com"}`, false},
		{joe, `{"email":"joe@gmail.co.uk"}`, false},
		{joe, `{"email":"joe@gmail.co-op.example"}`, false},
		{begoña, `{"email":"begoña@peña.example"}`, true},
		{begoña, `{"email":"BEGOÑA@PEÑA.EXAMPLE"}`, true},
		{begoña, `{"email":"bego\u00f1a@pe\u00F1a.example"}`, true},
		{begoña, `{"email":"BEGO\u00d1A@pe\u00f1a.example"}`, true},
		{begoña, `{"email":"begona@pena.example"}`, false},
		{customer{Identification: "AB/123456"}, `{"identification":"ab\/123456"}`, true},
		{customer{Email: "a@b.c", Phone: "12345"}, `{"email":"a@b.c","phone":"12345"}`, false},
	} {
		m := newMatcher(c.who)
		if got := m.MatchRaw([]byte(c.body)); got != c.want {
			t.Errorf("%s in %s: %v", c.who.Email, c.body, got)
		}
		if c.want && !containsHint(m.Hints(), c.body) {
			t.Errorf("the database skips %s: it contains none of %q", c.body, m.Hints())
		}
	}
}

func containsHint(hints []string, body string) bool {
	for _, hint := range hints {
		if strings.Contains(strings.ToLower(body), hint) {
			return true
		}
	}
	return false
}

func TestWhatIsAboutAnOrder(t *testing.T) {
	t.Parallel()
	m := newMatcher(customer{ID: "7"})
	m.addOrders([]string{"501", "A-1"})
	for body, want := range map[string]bool{
		`{"id":501}`: true, `{"id": 501 }`: true, `{"id":"501"}`: true, `{"order":{"x":[],"id":"a-1"}}`: true,
		`{"id":5010}`: false, `{"number":501}`: false, `{"id":[501]}`: false, `{"id":{"n":501}}`: false,
		`["id",501]`: false, `{"id":"7"}`: false,
	} {
		if got := m.MatchRaw([]byte(body)); got != want {
			t.Errorf("%s: %v", body, got)
		}
		if want && !containsHint(m.Hints(), body) {
			t.Errorf("the database skips %s", body)
		}
	}
	if !m.MatchDocument([]byte(`{"buyer":{"id":"7"}}`)) ||
		m.MatchDocument([]byte(`{"id":"77","x_id":"7"}`)) ||
		m.MatchDocument([]byte(`{"id":"501"}`)) {
		t.Error("documents match by another id than the customer's")
	}
	for n := range maxOrderHints {
		m.addOrders([]string{strings.Repeat("x", n+1)})
	}
	if hints := m.Hints(); len(hints) != 1 || !containsHint(hints, `{"id":"x"}`) {
		t.Errorf("hints of many orders: %q", hints)
	}
}
