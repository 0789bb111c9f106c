package shopify

import (
	"encoding/json"
	"fmt"
	"strconv"
)

func (s *server) webhooks(name, id string, n int, text func(string) string) string {
	switch name {
	case "Hooks":
		var nodes []string
		for _, h := range s.hooks {
			nodes = append(nodes, fmt.Sprintf(`{"id":%q,"topic":%q,"uri":%q}`, h.ID, h.Topic, h.URI))
		}
		return `"webhookSubscriptions":` + list(nodes, "")
	case "Subscribe":
		for _, h := range s.hooks {
			if string(h.Topic) == text("topic") && string(h.URI) == text("uri") {
				return `"webhookSubscriptionCreate":{"webhookSubscription":null,` +
					`"userErrors":[{"field":["webhookSubscription","callbackUrl"],"message":"Address for ` +
					`this topic has already been taken"}]}`
			}
		}
		s.lastHook++
		id := fmt.Sprintf("gid://shopify/WebhookSubscription/%d", s.lastHook)
		h := webhook{ID: id}
		_ = json.Unmarshal([]byte(strconv.Quote(text("topic"))), &h.Topic)
		_ = json.Unmarshal([]byte(strconv.Quote(text("uri"))), &h.URI)
		s.hooks[s.lastHook] = h
		return fmt.Sprintf(`"webhookSubscriptionCreate":{"webhookSubscription":{"id":%q,"topic":%q,`+
			`"uri":%q},"userErrors":[]}`, id, h.Topic, h.URI)
	case "Unsubscribe":
		if _, ok := s.hooks[n]; !ok {
			return `"webhookSubscriptionDelete":{"deletedWebhookSubscriptionId":null,` +
				`"userErrors":[{"field":["id"],"message":"Webhook subscription does not exist"}]}`
		}
		delete(s.hooks, n)
		return `"webhookSubscriptionDelete":{"deletedWebhookSubscriptionId":"` + id + `","userErrors":[]}`
	default:
		return `"unknown":null`
	}
}
