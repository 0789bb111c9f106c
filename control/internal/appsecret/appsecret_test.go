package appsecret

import (
	"fmt"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	b, err := Parse("tiendanube/1:secret:one|secret-two, shopify/a/b:secret-three")
	if err != nil {
		t.Fatal(err)
	}
	app := App{"tiendanube", "1"}
	if !b.Has(app) || !b.Has(App{"shopify", "a/b"}) || b.Has(App{"shopify", "1"}) {
		t.Error("other apps have secrets than the setting names")
	}
	all := b.VerificationSecrets(app, "whe_1")
	if len(all) != 4 || all[0].Reveal() != "secret:one" || all[1].Reveal() != "secret-two" ||
		all[2] != b.SubscriptionSecret(app, "whe_1") {
		t.Errorf("%d secrets verify", len(all))
	}
	if b.SubscriptionSecret(app, "whe_1") == b.SubscriptionSecret(app, "whe_2") ||
		len(b.SubscriptionSecret(app, "whe_1").Reveal()) != 64 {
		t.Error("two endpoints share a secret")
	}
	if b.SubscriptionSecret(App{"shopify", "x"}, "whe_1") != "" ||
		b.VerificationSecrets(App{"shopify", "x"}, "whe_1") != nil {
		t.Error("an app without a secret has one")
	}
	if strings.Contains(fmt.Sprintf("%v %+v %#v", b, all, all), "secret-two") {
		t.Error("a secret prints")
	}
	if empty, err := Parse(" "); err != nil || empty.Has(app) {
		t.Errorf("empty: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	f := func(setting, want string) {
		t.Helper()
		_, err := Parse(setting)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %v", setting, err)
		}
	}
	f("tiendanube:canary-1", "want provider/app_id")
	f("/1:canary-1", "want provider/app_id")
	f("tiendanube/:canary-1", "want provider/app_id")
	f("tiendanube/1", "want provider/app_id")
	f("tiendanube/1:canary", "at least 8")
	f("tiendanube/1:canary-1|", "at least 8")
	f("tiendanube/1:canary 12", "at least 8")
	f("tiendanube/1:canary-1|canary-2|canary-3", "at most 2")
	f("tiendanube/1:canary-1,tiendanube/1:canary-2", "named twice")
	f("x,tiendanube/1:canary", "app 2")
}

func TestCheckStrength(t *testing.T) {
	t.Parallel()
	const good = "0123456789abcdef01234567"
	f := func(setting, want string) {
		t.Helper()
		k, err := Parse(setting)
		if err != nil {
			t.Fatal(err)
		}
		err = k.CheckStrength()
		if want == "" && err != nil ||
			want != "" && (err == nil || !strings.HasSuffix(err.Error(), ": "+want)) {
			t.Errorf("%v, want %q", err, want)
		}
		if err != nil && strings.Contains(err.Error(), "0123456") {
			t.Error("the error quotes a secret")
		}
	}
	f("", "")
	f("a/1:"+good, "")
	f("a/1:"+good[1:], "a/1")
	f("a/1:"+good+"|"+good[1:]+",a/2:"+good, "a/1")
	f("b/1:"+strings.Repeat("0123456", 4)+",a/1:short-secret", "a/1, b/1")
}
