package shopify

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"storefront.internal/deploy/fakeprovider/docs"
	"storefront.internal/deploy/fakeprovider/hooks"
	"storefront.internal/deploy/fakeprovider/stores"
)

// enumTopic is the GraphQL name of a topic: products/update is PRODUCTS_UPDATE.
func enumTopic(topic string) string { return strings.ToUpper(strings.ReplaceAll(topic, "/", "_")) }

// headerTopic is the name in webhooks of a topic that the schema knows, "" of others.
func (f *Fake) headerTopic(topic string) string {
	if strings.Contains(topic, "/") {
		return topic
	}
	at := strings.LastIndexByte(topic, '_') // every event of the schema is one word
	if at < 0 {
		return ""
	}
	return strings.ToLower(topic[:at] + "/" + topic[at+1:])
}

func privacyTopics() []string {
	return []string{"customers/data_request", "customers/redact", "shop/redact"}
}

func shown(h hooks.Hook) object {
	return object{"id": gid("WebhookSubscription", h.ID), "topic": h.Topic, "uri": h.URL}
}

func (r call) subscriptions() connection {
	return func(map[string]any) ([]entry, error) {
		all := []entry{}
		for _, h := range r.store.Hooks.All(nil) {
			all = append(all, entry{idKey(h.ID), func() object { return shown(h) }})
		}
		return all, nil
	}
}

// mutations is the root of mutations.
func (f *Fake) mutations(r call) object {
	return object{
		"webhookSubscriptionCreate": resolver(
			func(args map[string]any) (any, error) { return f.subscribe(r, args), nil },
		),
		"webhookSubscriptionDelete": resolver(
			func(args map[string]any) (any, error) { return unsubscribe(r, args) },
		),
		"bulkOperationRunQuery": resolver(
			func(args map[string]any) (any, error) { return f.runBulk(r, args), nil },
		),
	}
}

func userErrors(message string, field ...string) []object {
	return []object{{"field": field, "message": message}}
}

func (f *Fake) subscribe(r call, args map[string]any) object {
	refused := func(message string) object {
		return object{
			"webhookSubscription": nil,
			"userErrors":          userErrors("Address "+message, "webhookSubscription", "uri"),
		}
	}
	topic, _ := args["topic"].(string)
	in, _ := args["webhookSubscription"].(map[string]any)
	uri, _ := in["uri"].(string)
	if fault := hooks.URLFault(uri, f.config.StrictURLs, "myshopify.com"); fault != "" {
		return refused(fault)
	}
	if len(r.store.Hooks.All(func(h hooks.Hook) bool { return h.Topic == topic && h.URL == uri })) > 0 {
		return refused("for this topic has already been taken")
	}
	now := f.config.Now()
	h := r.store.Hooks.Add(hooks.Hook{Topic: topic, URL: uri, Created: now, Updated: now})
	return object{"webhookSubscription": shown(h), "userErrors": []object{}}
}

func unsubscribe(r call, args map[string]any) (any, error) {
	_, id, err := ref(args["id"])
	if err != nil {
		return nil, err
	}
	if !r.store.Hooks.Remove(id) {
		return object{"deletedWebhookSubscriptionId": nil,
			"userErrors": userErrors("Webhook subscription does not exist", "id")}, nil
	}
	return object{"deletedWebhookSubscriptionId": args["id"], "userErrors": []object{}}, nil
}

// SendWebhook delivers a topic to its subscribers, and a privacy topic to every address of the app.
func (f *Fake) SendWebhook(store, topic, id string, o hooks.Options) ([]hooks.Delivery, error) {
	topic = f.headerTopic(topic)
	private := slices.Contains(privacyTopics(), topic)
	known := f.schema.Types["WebhookSubscriptionTopic"].EnumValues.ForName(enumTopic(topic))
	if known == nil && !private {
		return nil, stores.ErrTopic
	}
	s := f.Store(store)
	event, at := "evt-"+rand.Text(), f.config.Now() // all deliveries of one event share its id
	return s.Send(f.config.Sender, f.policy, enumTopic(topic), private, o, func(hooks.Hook) hooks.Message {
		return hooks.Message{
			Secret: f.config.AppSecret, Body: f.body(s, topic, id), SignatureHeader: "X-Shopify-Hmac-Sha256",
			Sign: hooks.Base64, Header: http.Header{
				"Content-Type": {
					"application/json",
				}, "User-Agent": {"Shopify-Captain-Hook"}, "X-Shopify-Topic": {topic},
				"X-Shopify-Shop-Domain": {s.ID + ".myshopify.com"}, "X-Shopify-Api-Version": {"2026-01"},
				"X-Shopify-Event-Id": {event}, "X-Shopify-Triggered-At": {at.UTC().Format(time.RFC3339Nano)},
			},
			DeliveryIDHeader: "X-Shopify-Webhook-Id",
		}
	})
}

// body is the document, or only its id when it is gone, or what a privacy request says.
func (f *Fake) body(s *stores.Store, topic, id string) []byte {
	n, _ := strconv.ParseInt(id, 10, 64) // 0 where a topic is about the shop
	domain := s.ID + ".myshopify.com"
	buyer := object{"id": 1, "email": "buyer@mail.example", "phone": "+1 555 0101"}
	switch topic {
	case "customers/redact":
		return stores.JSON(object{"shop_domain": domain, "customer": buyer, "orders_to_redact": []int64{n}})
	case "customers/data_request":
		return stores.JSON(object{"shop_domain": domain, "customer": buyer, "orders_requested": []int64{n}})
	case "shop/redact":
		return stores.JSON(object{"shop_domain": domain})
	case "app/uninstalled", "shop/update":
		return stores.JSON(
			object{"id": 1, "name": "Shop " + s.ID, "domain": domain, "myshopify_domain": domain},
		)
	}
	subject, event, _ := strings.Cut(topic, "/")
	kinds := map[string]string{
		"products":    stores.Products,
		"collections": stores.Categories,
		"orders":      stores.Orders,
	}
	if table := s.Tables[kinds[subject]]; table != nil && event != "delete" {
		if d, ok := table.Get(n); ok {
			return withoutDebugMembers(d)
		}
	}
	return stores.JSON(object{"id": n})
}

func withoutDebugMembers(d docs.Doc) []byte {
	members, err := docs.ParseMembers(d.JSON)
	if err != nil {
		return d.JSON
	}
	delete(members, "_collections")
	return stores.JSON(members)
}
