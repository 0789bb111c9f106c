package providertest

import (
	"slices"
	"testing"

	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/settings"
)

func testSignature(t *testing.T, open Open) {
	s := open(t, Client(t, callTimeout))
	body := []byte(`{"store_id":123,"event":"product/updated","id":1948209}`)
	secrets := []settings.Secret{"", "another", Secret}
	good := s.Sign(Secret, body)
	verify := s.Adapter.VerifySignature
	if !verify(secrets, good, body) || !verify([]settings.Secret{Secret, "next"}, good, body) {
		t.Fatal("the provider's own signature is refused")
	}
	for name, c := range map[string]struct {
		secrets   []settings.Secret
		signature string
		body      []byte
	}{
		"no secret":            {nil, good, body},
		"another secret":       {[]settings.Secret{"another"}, good, body},
		"empty secret":         {[]settings.Secret{""}, s.Sign("", body), body},
		"empty signature":      {secrets, "", body},
		"line feed behind":     {secrets, good + "\n", body},
		"line feed within":     {secrets, good[:10] + "\n" + good[10:], body},
		"space before":         {secrets, " " + good, body},
		"one character less":   {secrets, good[:len(good)-1], body},
		"twice":                {secrets, good + good, body},
		"scheme":               {secrets, "sha256=" + good, body},
		"body with line feed":  {secrets, good, append(slices.Clone(body), '\n')},
		"body with space":      {secrets, good, append(slices.Clone(body), ' ')},
		"empty body":           {secrets, good, nil},
		"signature of nothing": {secrets, s.Sign(Secret, nil), body},
	} {
		if verify(c.secrets, c.signature, c.body) {
			t.Errorf("%s: verified", name)
		}
	}
	for i := range body {
		tampered := slices.Clone(body)
		tampered[i] ^= 1
		if verify(secrets, good, tampered) {
			t.Errorf("verified with byte %d changed", i)
		}
	}
	for i := range len(good) {
		tampered := []byte(good)
		tampered[i] ^= 1
		if verify(secrets, string(tampered), body) {
			t.Errorf("verified with character %d of the signature changed", i)
		}
	}
}

func testTopic(t *testing.T, open Open) {
	s := open(t, Client(t, callTimeout))
	for _, kind := range []provider.EventKind{provider.Changed, provider.Deleted} {
		hint, body := s.Webhook(kind, "1001")
		topic, err := s.Adapter.ParseWebhook(hint, body)
		if err != nil || topic.Kind != kind || topic.Entity != catalog.Product || topic.ExternalID != "1001" {
			t.Errorf("%s: %+v, %v", kind, topic, err)
		}
		if s.Adapter.IsPing(body) {
			t.Errorf("%s is taken for a ping", kind)
		}
		// Without a hint it is at worst unspecified; it is never about another entity or the end of a
		// connection.
		topic, err = s.Adapter.ParseWebhook("", body)
		if err != nil || topic.Kind != provider.Unspecified &&
			(topic.Entity != catalog.Product || topic.ExternalID != "1001") {
			t.Errorf("%s without a hint: %+v, %v", kind, topic, err)
		}
		if topic, err = s.Adapter.ParseWebhook("no/such.topic", body); err != nil ||
			topic.Kind == provider.Uninstalled {
			t.Errorf("%s with a strange hint: %+v, %v", kind, topic, err)
		}
	}
	for _, body := range []string{"", "null", "[]", "7", `"x"`, "{", `{"id":{}}`, `{"id":[1]}`, "\xff\xfe"} {
		topic, err := s.Adapter.ParseWebhook("", []byte(body))
		if err == nil && (topic.Kind == provider.Changed || topic.Kind == provider.Deleted) {
			t.Errorf("%q: %+v", body, topic)
		}
	}
}

func testSubscriptions(t *testing.T, open Open) {
	s := open(t, Client(t, callTimeout))
	list := func() []provider.Subscription {
		t.Helper()
		all, err := s.Adapter.Subscriptions(t.Context(), s.Shop)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if all := list(); len(all) != 0 {
		t.Fatalf("a new store has subscriptions: %+v", all)
	}
	const url = "https://hooks.shop-example.com/internal/v1/x"
	made := make(map[string]string)
	topics := append(s.Adapter.WebhookTopics(), s.OtherTopics...)
	for _, topic := range topics {
		sub, err := s.Adapter.Subscribe(t.Context(), s.Shop,
			provider.Subscription{Topic: topic, URL: url, Secret: Secret})
		if err != nil || sub.ID == "" || sub.Topic != topic || sub.URL != url {
			t.Fatalf("subscribe to %s: %+v, %v", topic, sub, err)
		}
		made[sub.ID] = topic
	}
	if len(made) != len(topics) || len(s.OtherTopics) == 0 {
		t.Fatalf("%d subscriptions have ids of their own", len(made))
	}
	all := list()
	for _, sub := range all {
		if made[sub.ID] != sub.Topic || sub.URL != url || sub.Disabled {
			t.Errorf("listed %+v, made %q", sub, made[sub.ID])
		}
	}
	if len(all) != len(made) {
		t.Errorf("%d listed, %d made", len(all), len(made))
	}
	// A second one of a topic is a new one or the first one.
	again, err := s.Adapter.Subscribe(t.Context(), s.Shop,
		provider.Subscription{Topic: s.Adapter.WebhookTopics()[0], URL: url, Secret: Secret})
	if err != nil {
		t.Fatal(err)
	}
	made[again.ID] = again.Topic
	for id := range made {
		for range 2 {
			if err := s.Adapter.Unsubscribe(t.Context(), s.Shop, id); err != nil {
				t.Errorf("unsubscribe %s: %v", id, err)
			}
		}
	}
	if all := list(); len(all) != 0 {
		t.Errorf("left: %+v", all)
	}
}
