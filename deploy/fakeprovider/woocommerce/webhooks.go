package woocommerce

import (
	"crypto/md5" // the provider's delivery ids are such hashes
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"storefront.internal/deploy/fakeprovider/hooks"
	"storefront.internal/deploy/fakeprovider/stores"
)

// topics are what an app may subscribe to.
func topics() []string {
	return strings.Fields(`product.created product.updated product.deleted product.restored
		order.created order.updated order.deleted order.restored coupon.created coupon.updated coupon.deleted
		coupon.restored customer.created customer.updated customer.deleted`)
}

func shown(h hooks.Hook) object {
	return withDates(object{
		"id": h.ID, "name": h.Name, "status": h.Status, "topic": h.Topic, "delivery_url": h.URL,
	}, h.Created, h.Updated)
}

func listHooks(w http.ResponseWriter, r *http.Request) {
	all := stores.From(r).Hooks.All(nil)
	slices.Reverse(all)
	p, ok := page(w, r, len(all))
	if !ok {
		return
	}
	out := []object{}
	for _, h := range stores.Of(p, all) {
		out = append(out, shown(h))
	}
	stores.WriteJSON(w, http.StatusOK, out)
}

type registration struct {
	Name        string `json:"name"`
	Topic       string `json:"topic"`
	DeliveryURL string `json:"delivery_url"`
	Secret      string `json:"secret"`
	Status      string `json:"status"`
}

// readRegistration reads and checks a webhook; it answers the request when the webhook is invalid.
func (f *Fake) readRegistration(w http.ResponseWriter, r *http.Request, in *registration) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(in); err != nil {
		refuse(w, http.StatusBadRequest, "rest_invalid_json")
		return false
	}
	switch {
	case !slices.Contains(topics(), in.Topic):
		refuse(w, http.StatusBadRequest, "woocommerce_rest_webhook_topic_invalid")
	case hooks.URLFault(in.DeliveryURL, f.config.StrictURLs) != "":
		refuse(w, http.StatusBadRequest, "woocommerce_rest_webhook_delivery_url_invalid")
	case !slices.Contains([]string{"active", "paused", "disabled"}, in.Status):
		refuseParam(w, "status")
	default:
		return true
	}
	return false
}

// createHook makes a webhook and pings its address: one that does not answer the ping with 200 is disabled.
func (f *Fake) createHook(w http.ResponseWriter, r *http.Request) {
	in := registration{Name: "Webhook", Status: "active"}
	if !f.readRegistration(w, r, &in) {
		return
	}
	now := f.config.Now()
	if in.Secret == "" {
		in.Secret = fmt.Sprintf("%050x", stores.Hash(now.String()+in.DeliveryURL)) // never shown
	}
	s := stores.From(r)
	h := s.Hooks.Add(hooks.Hook{
		Name: in.Name, Topic: in.Topic, URL: in.DeliveryURL, Secret: in.Secret, Status: in.Status,
		Created: now, Updated: now,
	})
	if h.Status == "active" && !f.ping(s.ID, h) {
		h, _ = s.Hooks.Change(h.ID, func(h *hooks.Hook) { h.Status = "disabled" })
	}
	w.Header().Set("Location", fmt.Sprintf("%s/wp-json/wc/v3/webhooks/%d", site(s.ID), h.ID))
	stores.WriteJSON(w, http.StatusCreated, shown(h))
}

func (f *Fake) ping(store string, h hooks.Hook) bool {
	body := url.Values{"webhook_id": {strconv.FormatInt(h.ID, 10)}}.Encode()
	header := http.Header{
		"Content-Type": {"application/x-www-form-urlencoded"},
		"User-Agent":   {userAgent(store)},
	}
	d := f.config.Sender.Post(f.policy.Timeout, h, header, []byte(body))
	return d.Error == "" && d.Status == http.StatusOK
}

func userAgent(store string) string {
	return "WooCommerce/9.9.0 Hookshot (WordPress/6.9; " + site(store) + ")"
}

// hook returns the webhook of the path; it answers the request when there is none.
func hook(w http.ResponseWriter, r *http.Request) (hooks.Hook, bool) {
	id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64) // no hook has the id 0
	h, ok := stores.From(r).Hooks.Get(id)
	if !ok {
		refuse(w, http.StatusNotFound, "woocommerce_rest_shop_webhook_invalid_id")
	}
	return h, ok
}

func (f *Fake) changeHook(w http.ResponseWriter, r *http.Request) {
	h, ok := hook(w, r)
	if !ok {
		return
	}
	in := registration{h.Name, h.Topic, h.URL, h.Secret, h.Status}
	if !f.readRegistration(w, r, &in) {
		return
	}
	h, _ = stores.From(r).Hooks.Change(h.ID, func(h *hooks.Hook) {
		h.Name, h.Topic, h.URL, h.Secret, h.Status = in.Name, in.Topic, in.DeliveryURL, in.Secret, in.Status
		h.Updated = f.config.Now()
	})
	stores.WriteJSON(w, http.StatusOK, shown(h))
}

func (f *Fake) deleteHook(w http.ResponseWriter, r *http.Request) {
	h, ok := hook(w, r)
	if !ok {
		return
	}
	if force := r.URL.Query().Get("force"); force != "true" && force != "1" {
		refuse(w, http.StatusNotImplemented, "woocommerce_rest_trash_not_supported")
		return
	}
	stores.From(r).Hooks.Remove(h.ID)
	stores.WriteJSON(w, http.StatusOK, shown(h))
}

// SendWebhook delivers a topic to its active webhooks.
func (f *Fake) SendWebhook(store, topic, id string, o hooks.Options) ([]hooks.Delivery, error) {
	if !slices.Contains(topics(), topic) {
		return nil, stores.ErrTopic
	}
	s := f.Store(store)
	return s.Send(f.config.Sender, f.policy, topic, false, o, func(h hooks.Hook) hooks.Message {
		resource, event, _ := strings.Cut(topic, ".")
		// One id for all deliveries of a second: it identifies nothing.
		hash := md5.Sum(fmt.Appendf(nil, "%d%d", h.ID, f.config.Now().Unix()))
		return hooks.Message{
			Secret: h.Secret, Body: body(s, resource, event, id), SignatureHeader: "X-Wc-Webhook-Signature",
			Sign: hooks.Base64, Header: http.Header{
				"Content-Type": {"application/json"}, "User-Agent": {userAgent(store)},
				"X-Wc-Webhook-Source": {site(store) + "/"}, "X-Wc-Webhook-Topic": {topic},
				"X-Wc-Webhook-Resource": {resource}, "X-Wc-Webhook-Event": {event},
				"X-Wc-Webhook-Id":          {strconv.FormatInt(h.ID, 10)},
				"X-Wc-Webhook-Delivery-Id": {hex.EncodeToString(hash[:])},
			},
		}
	})
}

// body is the document as the API answers it, or only its id when it is gone.
func body(s *stores.Store, resource, event, id string) []byte {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return stores.JSON(object{"id": id})
	}
	if table := s.Tables[resource+"s"]; table != nil && event != "deleted" {
		if d, ok := table.Get(n); ok {
			return d.JSON
		}
	}
	return stores.JSON(object{"id": n})
}
