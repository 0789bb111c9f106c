package tiendanube

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"storefront.internal/deploy/fakeprovider/docs"
	"storefront.internal/deploy/fakeprovider/hooks"
	"storefront.internal/deploy/fakeprovider/stores"
)

// topics are what an app may subscribe to.
func topics() []string {
	all := []string{"app/uninstalled", "app/suspended", "app/resumed", "domain/updated", "product_variant/custom_fields_updated", "subscription/updated"}
	for subject, events := range map[string]string{
		"category": "created updated deleted", "product": "created updated deleted", "customer": "created updated deleted",
		"order":       "created updated paid packed fulfilled cancelled edited pending voided unpacked custom_fields_updated",
		"fulfillment": "updated",
	} {
		for event := range strings.FieldsSeq(events) {
			all = append(all, subject+"/"+event)
		}
	}
	return all
}

// private are the topics of the partner panel: they go to the app and cannot be subscribed to.
func private() []string {
	return []string{"store/redact", "customers/redact", "customers/data_request"}
}

type registration struct {
	ID        int64  `json:"id"`
	URL       string `json:"url"`
	Event     string `json:"event"`
	CreatedAt string `json:"created_at"`
	UpdatedAt string `json:"updated_at"`
}

func shown(h hooks.Hook) registration {
	return registration{h.ID, h.URL, h.Topic, formatStamp(h.Created), formatStamp(h.Updated)}
}

func (f *Fake) listHooks(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	part, wrong := windowOf(q)
	keep, wrongFilter := filter(q)
	if wrong += wrongFilter; wrong != "" {
		unprocessable(w, wrong, "is invalid")
		return
	}
	all := storeOf(r).Hooks.All(func(h hooks.Hook) bool {
		return keep(h.ID, h.Updated) && (q.Get("url") == "" || q.Get("url") == h.URL) && (q.Get("event") == "" || q.Get("event") == h.Topic)
	})
	last := (len(all) + part.size - 1) / part.size
	if part.page > last {
		lastPage(w, last)
		return
	}
	from := (part.page - 1) * part.size
	w.Header().Set("X-Total-Count", strconv.Itoa(len(all)))
	links(w, r, part.page, last)
	out := []docs.Doc{}
	for _, h := range all[from:min(from+part.size, len(all))] {
		out = append(out, docs.Doc{JSON: marshal(shown(h))})
	}
	writeDocs(w, out, part.fields)
}

// wanted reads and judges a registration.
func (f *Fake) wanted(w http.ResponseWriter, r *http.Request) (event, url string, ok bool) {
	var in struct {
		Event   string            `json:"event"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&in); err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "Problems parsing JSON"})
		return "", "", false
	}
	faults := map[string][]string{}
	if !slices.Contains(topics(), in.Event) {
		faults["event"] = []string{"is not a valid event"}
	}
	if fault := hooks.URLFault(in.URL, f.config.StrictURLs, "tiendanube", "nuvemshop"); fault != "" {
		faults["url"] = []string{fault}
	}
	if len(faults) > 0 {
		writeJSON(w, http.StatusUnprocessableEntity, faults)
		return "", "", false
	}
	return in.Event, in.URL, true
}

func (f *Fake) createHook(w http.ResponseWriter, r *http.Request) {
	event, url, ok := f.wanted(w, r)
	if !ok {
		return
	}
	now := f.config.Now()
	h := storeOf(r).Hooks.Add(hooks.Hook{Topic: event, URL: url, Created: now, Updated: now})
	writeJSON(w, http.StatusCreated, shown(h))
}

func hookID(r *http.Request) int64 {
	id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64) // 0 is nobody's
	return id
}

func (f *Fake) showHook(w http.ResponseWriter, r *http.Request) {
	h, ok := storeOf(r).Hooks.Get(hookID(r))
	if !ok {
		refuseWith(w, http.StatusNotFound, "Webhook not found")
		return
	}
	writeJSON(w, http.StatusOK, shown(h))
}

func (f *Fake) changeHook(w http.ResponseWriter, r *http.Request) {
	event, url, ok := f.wanted(w, r)
	if !ok {
		return
	}
	h, ok := storeOf(r).Hooks.Change(hookID(r), func(h *hooks.Hook) { h.Topic, h.URL, h.Updated = event, url, f.config.Now() })
	if !ok {
		refuseWith(w, http.StatusNotFound, "Webhook not found")
		return
	}
	writeJSON(w, http.StatusOK, shown(h))
}

func (f *Fake) deleteHook(w http.ResponseWriter, r *http.Request) {
	if !storeOf(r).Hooks.Remove(hookID(r)) {
		refuseWith(w, http.StatusNotFound, "Webhook not found")
		return
	}
	writeJSON(w, http.StatusOK, struct{}{})
}

// Announce delivers a topic to who subscribed to it; a private topic to every address of the app.
func (f *Fake) Announce(store, topic, id string, o hooks.Options) ([]hooks.Delivery, error) {
	if !slices.Contains(topics(), topic) && !slices.Contains(private(), topic) {
		return nil, stores.ErrTopic
	}
	s := f.Of(store)
	to := s.Recipients(topic, slices.Contains(private(), topic))
	if len(to) == 0 {
		return nil, stores.ErrNobody
	}
	var sent []hooks.Delivery
	for _, h := range to {
		sent = append(sent, f.config.Sender.Send(&s.Hooks, f.policy, hooks.Message{
			Hook: h, Secret: f.config.AppSecret, Body: notification(store, topic, id), SignatureHeader: signatureHeader,
			Sign: func(secret string, body []byte) http.Header {
				return http.Header{
					"Content-Type": {"application/json"}, "User-Agent": {"Tiendanube webhooks (demo)"}, signatureHeader: {hooks.Hex(secret, body)},
				}
			},
		}, o)...)
	}
	return sent, nil
}

const signatureHeader = "X-Linkedstore-Hmac-Sha256"

// notification is the body of a delivery: what changed, and not the thing itself.
func notification(store, topic, id string) []byte {
	customer := map[string]any{"id": 1, "email": "buyer@mail.example", "phone": "+54 11 50000000", "identification": "00000000"}
	switch topic {
	case "store/redact":
		return marshal(map[string]any{"store_id": number(store)})
	case "customers/redact":
		return marshal(map[string]any{"store_id": number(store), "customer": customer, "orders_to_redact": []any{number(id)}})
	case "customers/data_request":
		return marshal(map[string]any{
			"store_id": number(store), "customer": customer, "orders_requested": []any{number(id)}, "checkouts_requested": []any{},
			"drafts_orders_requested": []any{}, "data_request": map[string]any{"id": 1},
		})
	}
	out := struct {
		Store any    `json:"store_id"`
		Event string `json:"event"`
		ID    any    `json:"id,omitempty"`
	}{Store: number(store), Event: topic}
	if id != "" && !strings.HasPrefix(topic, "domain/") {
		out.ID = number(id)
	}
	return marshal(out)
}
