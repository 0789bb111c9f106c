package principal

import (
	"strings"
	"testing"
)

func token(c string) string { return strings.Repeat(c, MinTokenLength) }

func TestIdentify(t *testing.T) {
	t.Parallel()
	k, err := Parse(Tokens{
		Connectors: "tiendanube:" + token("a") + "|" + token("b") + ", shopify:" + token("c"),
		Backend:    token("d") + "|" + token("e"),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		token string
		want  Identity
		ok    bool
	}{
		{token("a"), Identity{Connector, "tiendanube"}, true},
		{token("b"), Identity{Connector, "tiendanube"}, true},
		{token("c"), Identity{Connector, "shopify"}, true},
		{token("d"), Identity{Backend, ""}, true},
		{token("e"), Identity{Backend, ""}, true},
		{token("f"), Identity{}, false},
		{"", Identity{}, false},
		{token("a") + "a", Identity{}, false},
		{token("a")[1:], Identity{}, false},
		{token("a") + "|" + token("b"), Identity{}, false},
	} {
		got, ok := k.Identify([]byte(c.token))
		if got != c.want || ok != c.ok {
			t.Errorf("Identify(%q) = %v, %v; want %v, %v", c.token, got, ok, c.want, c.ok)
		}
	}
	if !k.Mounted(Connector) || !k.Mounted(Backend) || k.Mounted(Engine) || k.Mounted(0) {
		t.Error("mounted roles are connector and backend, nothing else")
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	good := "shopify:" + token("a")
	f := func(name string, tokens Tokens, want string) {
		t.Helper()
		_, err := Parse(tokens)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want one that says %q", name, err, want)
			return
		}
		for _, secret := range []string{token("a"), token("b"), "short-secret"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the fault quotes a token", name)
			}
		}
	}
	f("no connector", Tokens{Backend: token("b")}, "mandatory")
	f("no provider", Tokens{Connectors: token("a")}, "want provider:token")
	f("custom", Tokens{Connectors: "custom:" + token("a")}, "want provider:token")
	f("upper case", Tokens{Connectors: "Shopify:" + token("a")}, "want provider:token")
	f("empty token", Tokens{Connectors: "shopify:"}, "at least 32")
	f("short token", Tokens{Connectors: "shopify:short-secret"}, "at least 32")
	f("short next", Tokens{Connectors: good + "|short-secret"}, "at least 32")
	f("blank in token", Tokens{Connectors: good, Backend: token("b") + " x"}, "visible ASCII")
	f("three values", Tokens{Connectors: good, Engine: token("b") + "|" + token("c") + "|" + token("d")},
		"at most 2")
	f("provider twice", Tokens{Connectors: good + ",shopify:" + token("b")}, "named twice")
	f("one token, two principals", Tokens{Connectors: good, Backend: token("a")}, "set twice")
	f("all faults at once", Tokens{Backend: "short-secret"}, "mandatory")
	f("all faults at once", Tokens{Backend: "short-secret"}, "backend")
}
