package main

import (
	"context"
	"strings"
	"testing"
)

func env(text string) func(string) string {
	all := map[string]string{}
	for line := range strings.SplitSeq(text, " ") {
		name, value, _ := strings.Cut(line, "=")
		all["FAKEPROVIDER_"+name] = value
	}
	return func(name string) string { return all[name] }
}

func TestConfig(t *testing.T) {
	t.Parallel()
	c, err := configFrom(env("PRODUCTS=5 ORDERS=2 SEED=9 APP_SECRET=s THROTTLE=off STRICT_URLS=on " +
		"STORES=tiendanube:7,woocommerce:a.example:8080 CONTROL=http://c:1/ CONNECTOR_TOKENS=shopify:t"))
	if err != nil || c.Products != 5 || c.Orders != 2 || c.Seed != 9 || c.AppSecret != "s" ||
		!c.Unthrottled || !c.StrictURLs {
		t.Errorf("%+v, %v", c, err)
	}
	if c.FirstStores["woocommerce"] != "a.example:8080" || c.Forward == nil ||
		c.Forward.Control != "http://c:1" || c.Forward.Tokens["shopify"] != "t" {
		t.Errorf("%+v", c)
	}
	_, err = configFrom(env("PRODUCTS=x SEED=-1 STORES=tiendanube CONTROL=http://c " +
		"CONNECTOR_TOKENS=shopify:"))
	for _, name := range []string{"PRODUCTS", "SEED", "STORES", "CONNECTOR_TOKENS"} {
		if err == nil || !strings.Contains(err.Error(), "FAKEPROVIDER_"+name) {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, env("LISTEN=127.0.0.1:0")); err != nil {
		t.Error(err)
	}
	if err := run(t.Context(), env("")); err == nil {
		t.Error("runs without an address")
	}
	if err := run(t.Context(), env("LISTEN=nowhere:x")); err == nil {
		t.Error("runs at no address")
	}
}
