package shopify

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"storefront.internal/deploy/fakeprovider/docs"
	"storefront.internal/deploy/fakeprovider/hooks"
	"storefront.internal/deploy/fakeprovider/stores"
)

// constant turns a topic as deliveries name it (products/update) into the one of GraphQL (PRODUCTS_UPDATE).
func constant(topic string) string { return strings.ToUpper(strings.ReplaceAll(topic, "/", "_")) }

// slashed turns it back; only the last underscore but for the topics of two words is the slash, so the known ones are searched.
func (f *Fake) slashed(topic string) string {
	subject, event, _ := strings.Cut(strings.ToLower(topic), "_")
	for _, long := range []string{"inventory_levels", "inventory_items", "bulk_operations"} {
		if rest, ok := strings.CutPrefix(strings.ToLower(topic), long+"_"); ok {
			subject, event = long, rest
		}
	}
	return subject + "/" + event
}

func private() []string { return []string{"customers/data_request", "customers/redact", "shop/redact"} }

func (f *Fake) shown(r call, h hooks.Hook) object {
	return object{
		"__typename": "WebhookSubscription", "id": gid("WebhookSubscription", h.ID), "legacyResourceId": number(h.ID), "topic": h.Topic, "uri": h.URL,
		"callbackUrl": h.URL, "endpoint": object{"__typename": "WebhookHttpEndpoint", "callbackUrl": h.URL}, "format": "JSON", "includeFields": []string{},
		"filter": nil, "metafieldNamespaces": []string{}, "name": nil, "createdAt": stamp(h.Created), "updatedAt": stamp(h.Updated),
		"apiVersion": object{"__typename": "ApiVersion", "displayName": r.version, "handle": r.version, "supported": true},
	}
}

func (f *Fake) subscription(r call, args map[string]any) (any, error) {
	_, id, err := ref(args["id"])
	if err != nil {
		return nil, err
	}
	if h, ok := r.store.Hooks.Get(id); ok {
		return f.shown(r, h), nil
	}
	return nil, nil
}

func (f *Fake) subscriptions(r call) connection {
	return connection{"WebhookSubscription", func(args map[string]any) ([]entry, error) {
		topics, _ := args["topics"].([]any)
		all := []entry{}
		for _, h := range r.store.Hooks.All(nil) {
			for _, name := range []string{"uri", "callbackUrl"} {
				if want, ok := args[name].(string); ok && want != h.URL {
					h.ID = 0
				}
			}
			if h.ID != 0 && (len(topics) == 0 || slices.Contains(topics, any(h.Topic))) {
				all = append(all, entry{fmt.Sprintf("%019d", h.ID), func() object { return f.shown(r, h) }})
			}
		}
		return all, nil
	}}
}

// mutations is the root of what changes something.
func (f *Fake) mutations(r call) object {
	return object{
		"__typename":                "Mutation",
		"webhookSubscriptionCreate": computed(func(args map[string]any) (any, error) { return f.subscribe(r, args), nil }),
		"webhookSubscriptionUpdate": computed(func(args map[string]any) (any, error) { return f.resubscribe(r, args) }),
		"webhookSubscriptionDelete": computed(func(args map[string]any) (any, error) { return f.unsubscribe(r, args) }),
		"bulkOperationRunQuery":     computed(func(args map[string]any) (any, error) { return f.runBulk(r, args), nil }),
		"bulkOperationCancel":       computed(func(args map[string]any) (any, error) { return f.cancelBulk(r, args) }),
	}
}

func userError(message string, field ...string) []object {
	return []object{{"__typename": "UserError", "field": field, "message": message}}
}

// address reads and judges where a subscription goes.
func (f *Fake) address(args map[string]any) (uri string, faults []object) {
	in, _ := args["webhookSubscription"].(map[string]any)
	uri, _ = in["uri"].(string)
	if uri == "" {
		uri, _ = in["callbackUrl"].(string) // deprecated, and taken
	}
	if fault := hooks.URLFault(uri, f.config.StrictURLs, "myshopify.com"); fault != "" {
		return "", userError("Address "+fault, "webhookSubscription", "uri")
	}
	return uri, nil
}

func (f *Fake) subscribe(r call, args map[string]any) object {
	out := object{"__typename": "WebhookSubscriptionCreatePayload", "webhookSubscription": nil, "userErrors": []object{}}
	topic, _ := args["topic"].(string)
	uri, faults := f.address(args)
	if faults == nil && len(r.store.Hooks.All(func(h hooks.Hook) bool { return h.Topic == topic && h.URL == uri })) > 0 {
		faults = userError("Address for this topic has already been taken", "webhookSubscription", "uri")
	}
	if faults != nil {
		out["userErrors"] = faults
		return out
	}
	now := f.config.Now()
	out["webhookSubscription"] = f.shown(r, r.store.Hooks.Add(hooks.Hook{Topic: topic, URL: uri, Created: now, Updated: now}))
	return out
}

func (f *Fake) resubscribe(r call, args map[string]any) (any, error) {
	_, id, err := ref(args["id"])
	if err != nil {
		return nil, err
	}
	out := object{"__typename": "WebhookSubscriptionUpdatePayload", "webhookSubscription": nil, "userErrors": []object{}}
	uri, faults := f.address(args)
	if faults != nil {
		out["userErrors"] = faults
		return out, nil
	}
	h, ok := r.store.Hooks.Change(id, func(h *hooks.Hook) { h.URL, h.Updated = uri, f.config.Now() })
	if !ok {
		out["userErrors"] = userError("Webhook subscription does not exist", "id")
		return out, nil
	}
	out["webhookSubscription"] = f.shown(r, h)
	return out, nil
}

func (f *Fake) unsubscribe(r call, args map[string]any) (any, error) {
	_, id, err := ref(args["id"])
	if err != nil {
		return nil, err
	}
	out := object{"__typename": "WebhookSubscriptionDeletePayload", "deletedWebhookSubscriptionId": nil, "userErrors": []object{}}
	if r.store.Hooks.Remove(id) {
		out["deletedWebhookSubscriptionId"] = args["id"]
	} else {
		out["userErrors"] = userError("Webhook subscription does not exist", "id")
	}
	return out, nil
}

// Announce delivers a topic to who subscribed to it; a privacy topic to every address of the app.
func (f *Fake) Announce(store, topic, id string, o hooks.Options) ([]hooks.Delivery, error) {
	if !strings.Contains(topic, "/") {
		topic = f.slashed(topic)
	}
	whole := slices.Contains(private(), topic)
	if known := f.schema.Types["WebhookSubscriptionTopic"].EnumValues.ForName(constant(topic)); known == nil && !whole {
		return nil, stores.ErrTopic
	}
	s := f.Of(store)
	to := s.Recipients(constant(topic), whole)
	if len(to) == 0 {
		return nil, stores.ErrNobody
	}
	// One event, whatever many deliveries it comes to: repeats share its id.
	event, at := "evt-"+rand.Text(), f.config.Now()
	var sent []hooks.Delivery
	for _, h := range to {
		sent = append(sent, f.config.Sender.Send(&s.Hooks, f.policy, hooks.Message{
			Hook: h, Secret: f.config.AppSecret, Body: f.resource(s, topic, id), SignatureHeader: signatureHeader,
			Sign: func(secret string, body []byte) http.Header {
				return http.Header{
					"Content-Type": {"application/json"}, "User-Agent": {"Shopify-Captain-Hook"}, "X-Shopify-Topic": {topic},
					"X-Shopify-Shop-Domain": {s.ID + ".myshopify.com"}, "X-Shopify-Api-Version": {"2026-01"}, "X-Shopify-Webhook-Id": {"wh-" + rand.Text()},
					"X-Shopify-Event-Id": {event}, "X-Shopify-Triggered-At": {at.UTC().Format(time.RFC3339Nano)}, signatureHeader: {hooks.Base64(secret, body)},
				}
			},
		}, o)...)
	}
	return sent, nil
}

const signatureHeader = "X-Shopify-Hmac-Sha256"

// resource is the body: the document, or only its id when it is gone, or what a privacy request says.
func (f *Fake) resource(s *stores.Store, topic, id string) []byte {
	n, _ := strconv.ParseInt(id, 10, 64) // 0 where a topic is about the shop
	domain := s.ID + ".myshopify.com"
	buyer := object{"id": 1, "email": "buyer@mail.example", "phone": "+1 555 0101"}
	switch topic {
	case "customers/redact":
		return marshal(object{"shop_id": 1, "shop_domain": domain, "customer": buyer, "orders_to_redact": []int64{n}})
	case "customers/data_request":
		return marshal(object{"shop_id": 1, "shop_domain": domain, "customer": buyer, "orders_requested": []int64{n}, "data_request": object{"id": 1}})
	case "shop/redact":
		return marshal(object{"shop_id": 1, "shop_domain": domain})
	case "app/uninstalled", "shop/update":
		return marshal(object{"id": 1, "name": "Shop " + s.ID, "domain": domain, "myshopify_domain": domain, "currency": Currency, "primary_locale": Language})
	}
	subject, event, _ := strings.Cut(topic, "/")
	kind := map[string]string{"products": stores.Products, "collections": stores.Categories, "orders": stores.Orders}[subject]
	if table := s.Tables[kind]; table != nil && event != "delete" {
		if d, ok := table.Get(n); ok {
			return public(d)
		}
	}
	return marshal(object{"id": n})
}

// public is a document without what only the debug route shows.
func public(d docs.Doc) []byte {
	members, err := docs.ParseMembers(d.JSON)
	if err != nil {
		return d.JSON
	}
	delete(members, "_collections")
	text, err := json.Marshal(members)
	if err != nil {
		return d.JSON
	}
	return text
}
