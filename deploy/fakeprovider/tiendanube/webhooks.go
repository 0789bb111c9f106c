package tiendanube

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"storefront.internal/deploy/fakeprovider/docs"
	"storefront.internal/deploy/fakeprovider/hooks"
	"storefront.internal/deploy/fakeprovider/stores"
)

// topics are what an app may subscribe to.
func topics() []string {
	return strings.Fields(`app/uninstalled app/suspended app/resumed domain/updated subscription/updated
		category/created category/updated category/deleted product/created product/updated product/deleted
		product_variant/custom_fields_updated customer/created customer/updated customer/deleted
		order/created order/updated order/paid order/packed order/fulfilled order/cancelled order/edited
		order/pending order/voided order/unpacked order/custom_fields_updated fulfillment/updated`)
}

// privacyTopics go to the app, and an app cannot subscribe to them.
func privacyTopics() []string {
	return []string{"store/redact", "customers/redact", "customers/data_request"}
}

func shown(h hooks.Hook) docs.Doc {
	return docs.Doc{JSON: stores.JSON(object{
		"id": h.ID, "url": h.URL, "event": h.Topic, "created_at": formatTime(h.Created),
		"updated_at": formatTime(h.Updated),
	})}
}

func listHooks(w http.ResponseWriter, r *http.Request) {
	var all []hooks.Hook
	p, ok := page(w, r, func(keep func(int64, time.Time) bool) int {
		all = stores.From(r).Hooks.All(func(h hooks.Hook) bool { return keep(h.ID, h.Updated) })
		return len(all)
	})
	if !ok {
		return
	}
	out := []docs.Doc{}
	for _, h := range stores.Of(p, all) {
		out = append(out, shown(h))
	}
	stores.WriteDocs(w, out, "")
}

func (f *Fake) createHook(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Event string `json:"event"`
		URL   string `json:"url"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&in); err != nil {
		refuseWith(w, http.StatusBadRequest, "Problems parsing JSON")
		return
	}
	faults := map[string][]string{}
	if !slices.Contains(topics(), in.Event) {
		faults["event"] = []string{"is not a valid event"}
	}
	if fault := hooks.URLFault(in.URL, f.config.StrictURLs, "tiendanube", "nuvemshop"); fault != "" {
		faults["url"] = []string{fault}
	}
	if len(faults) > 0 {
		stores.WriteJSON(w, http.StatusUnprocessableEntity, faults)
		return
	}
	now := f.config.Now()
	h := stores.From(r).Hooks.Add(hooks.Hook{Topic: in.Event, URL: in.URL, Created: now, Updated: now})
	stores.WriteJSON(w, http.StatusCreated, shown(h).JSON)
}

func deleteHook(w http.ResponseWriter, r *http.Request) {
	id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64) // no hook has the id 0
	if !stores.From(r).Hooks.Remove(id) {
		refuseWith(w, http.StatusNotFound, "Webhook not found")
		return
	}
	stores.WriteJSON(w, http.StatusOK, struct{}{})
}

// SendWebhook delivers a topic to its subscribers, and a privacy topic to every address of the app.
func (f *Fake) SendWebhook(store, topic, id string, o hooks.Options) ([]hooks.Delivery, error) {
	private := slices.Contains(privacyTopics(), topic)
	if !private && !slices.Contains(topics(), topic) {
		return nil, stores.ErrTopic
	}
	return f.Store(store).Send(f.config.Sender, f.policy, topic, private, o, func(hooks.Hook) hooks.Message {
		return hooks.Message{
			Secret: f.config.AppSecret, Body: body(store, topic, id),
			SignatureHeader: "X-Linkedstore-Hmac-Sha256",
			Sign:            hooks.Hex, Header: http.Header{
				"Content-Type": {"application/json"}, "User-Agent": {"Tiendanube webhooks (demo)"},
			},
		}
	})
}

// body names what changed; it does not hold the entity.
func body(store, topic, id string) []byte {
	customer := object{
		"id": 1, "email": "buyer@mail.example", "phone": "+54 11 50000000", "identification": "00000000",
	}
	switch topic {
	case "store/redact":
		return stores.JSON(object{"store_id": number(store)})
	case "customers/redact":
		return stores.JSON(
			object{"store_id": number(store), "customer": customer, "orders_to_redact": []any{number(id)}},
		)
	case "customers/data_request":
		return stores.JSON(
			object{"store_id": number(store), "customer": customer, "orders_requested": []any{number(id)}},
		)
	}
	out := struct {
		Store any    `json:"store_id"`
		Event string `json:"event"`
		ID    any    `json:"id,omitempty"`
	}{Store: number(store), Event: topic}
	if id != "" && !strings.HasPrefix(topic, "domain/") {
		out.ID = number(id)
	}
	return stores.JSON(out)
}
