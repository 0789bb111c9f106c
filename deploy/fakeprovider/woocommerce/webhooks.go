package woocommerce

import (
	"crypto/md5" //nolint:gosec // the provider's delivery ids are such hashes
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

func topics() []string {
	all := []string{"order.restored", "coupon.restored", "product.restored"}
	for _, subject := range []string{"product", "order", "customer", "coupon"} {
		for _, event := range []string{"created", "updated", "deleted"} {
			all = append(all, subject+"."+event)
		}
	}
	return all
}

func shown(store string, h hooks.Hook) object {
	resource, event, _ := strings.Cut(h.Topic, ".")
	link := fmt.Sprintf("%s/wp-json/wc/v3/webhooks", site(store))
	return dated(object{
		"id": h.ID, "name": h.Name, "status": h.Status, "topic": h.Topic, "resource": resource, "event": event,
		"hooks": []string{"woocommerce_" + event + "_" + resource}, "delivery_url": h.URL,
		"_links": object{"self": []object{{"href": fmt.Sprintf("%s/%d", link, h.ID)}}, "collection": []object{{"href": link}}},
	}, h.Created, h.Updated)
}

func (f *Fake) listHooks(w http.ResponseWriter, r *http.Request) {
	page, size, wrong := bounds(r.URL.Query())
	if wrong != "" {
		refuseParam(w, wrong)
		return
	}
	status := r.URL.Query().Get("status")
	all := storeOf(r).Hooks.All(func(h hooks.Hook) bool { return status == "" || status == "all" || status == h.Status })
	slices.Reverse(all)
	last := (len(all) + size - 1) / size
	from := min((page-1)*size, len(all))
	out := []object{}
	for _, h := range all[from:min(from+size, len(all))] {
		out = append(out, shown(storeOf(r).ID, h))
	}
	totals(w, r, len(all), page, last)
	writeJSON(w, http.StatusOK, out)
}

type registration struct {
	Name        string `json:"name"`
	Topic       string `json:"topic"`
	DeliveryURL string `json:"delivery_url"`
	Secret      string `json:"secret"`
	Status      string `json:"status"`
}

func (f *Fake) wanted(w http.ResponseWriter, r *http.Request, in *registration) bool {
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

// createHook makes a webhook and greets its address with a ping: one that does not answer it with 200 is disabled.
func (f *Fake) createHook(w http.ResponseWriter, r *http.Request) {
	in := registration{Name: "Webhook", Status: "active"}
	if !f.wanted(w, r, &in) {
		return
	}
	now := f.config.Now()
	if in.Secret == "" {
		in.Secret = fmt.Sprintf("%050x", stores.Spread(now.String()+in.DeliveryURL)) // nobody learns it
	}
	s := storeOf(r)
	h := s.Hooks.Add(hooks.Hook{Name: in.Name, Topic: in.Topic, URL: in.DeliveryURL, Secret: in.Secret, Status: in.Status, Created: now, Updated: now})
	if h.Status == "active" && !f.ping(s.ID, h) {
		h, _ = s.Hooks.Change(h.ID, func(h *hooks.Hook) { h.Status = "disabled" })
	}
	w.Header().Set("Location", fmt.Sprintf("%s/wp-json/wc/v3/webhooks/%d", site(s.ID), h.ID))
	writeJSON(w, http.StatusCreated, shown(s.ID, h))
}

func (f *Fake) ping(store string, h hooks.Hook) bool {
	body := url.Values{"webhook_id": {strconv.FormatInt(h.ID, 10)}}.Encode()
	d := f.config.Sender.Post(f.policy.Timeout, h, http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "User-Agent": {agent(store)}}, []byte(body))
	return d.Error == "" && d.Status == http.StatusOK
}

func agent(store string) string {
	return "WooCommerce/9.9.0 Hookshot (WordPress/6.9; " + site(store) + ")"
}

func (f *Fake) hook(w http.ResponseWriter, r *http.Request) (hooks.Hook, bool) {
	id, _ := numberOf(r.PathValue("id")) // 0 is nobody's
	h, ok := storeOf(r).Hooks.Get(id)
	if !ok {
		refuse(w, http.StatusNotFound, "woocommerce_rest_shop_webhook_invalid_id")
	}
	return h, ok
}

func (f *Fake) showHook(w http.ResponseWriter, r *http.Request) {
	if h, ok := f.hook(w, r); ok {
		writeJSON(w, http.StatusOK, shown(storeOf(r).ID, h))
	}
}

func (f *Fake) changeHook(w http.ResponseWriter, r *http.Request) {
	h, ok := f.hook(w, r)
	if !ok {
		return
	}
	in := registration{h.Name, h.Topic, h.URL, h.Secret, h.Status}
	if !f.wanted(w, r, &in) {
		return
	}
	h, _ = storeOf(r).Hooks.Change(h.ID, func(h *hooks.Hook) {
		h.Name, h.Topic, h.URL, h.Secret, h.Status, h.Updated = in.Name, in.Topic, in.DeliveryURL, in.Secret, in.Status, f.config.Now()
	})
	writeJSON(w, http.StatusOK, shown(storeOf(r).ID, h))
}

func (f *Fake) deleteHook(w http.ResponseWriter, r *http.Request) {
	h, ok := f.hook(w, r)
	if !ok {
		return
	}
	if force := r.URL.Query().Get("force"); force != "true" && force != "1" {
		refuse(w, http.StatusNotImplemented, "woocommerce_rest_trash_not_supported")
		return
	}
	storeOf(r).Hooks.Remove(h.ID)
	writeJSON(w, http.StatusOK, shown(storeOf(r).ID, h))
}

// Announce delivers a topic to the active webhooks for it.
func (f *Fake) Announce(store, topic, id string, o hooks.Options) ([]hooks.Delivery, error) {
	if !slices.Contains(topics(), topic) {
		return nil, stores.ErrTopic
	}
	s := f.Of(store)
	to := s.Recipients(topic, false)
	if len(to) == 0 {
		return nil, stores.ErrNobody
	}
	var sent []hooks.Delivery
	for _, h := range to {
		sent = append(sent, f.config.Sender.Send(&s.Hooks, f.policy, hooks.Message{
			Hook: h, Secret: h.Secret, Body: f.resource(s, topic, id), SignatureHeader: signatureHeader,
			Sign: func(secret string, body []byte) http.Header { return f.headers(store, h, secret, body) },
		}, o)...)
	}
	return sent, nil
}

const signatureHeader = "X-Wc-Webhook-Signature"

func (f *Fake) headers(store string, h hooks.Hook, secret string, body []byte) http.Header {
	resource, event, _ := strings.Cut(h.Topic, ".")
	// One id for all deliveries of a second: it identifies nothing.
	hash := md5.Sum(fmt.Appendf(nil, "%d%d", h.ID, f.config.Now().Unix())) //nolint:gosec // see above
	return http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {agent(store)}, "X-Wc-Webhook-Source": {site(store) + "/"},
		"X-Wc-Webhook-Topic": {h.Topic}, "X-Wc-Webhook-Resource": {resource}, "X-Wc-Webhook-Event": {event},
		"X-Wc-Webhook-Id": {strconv.FormatInt(h.ID, 10)}, "X-Wc-Webhook-Delivery-Id": {hex.EncodeToString(hash[:])},
		signatureHeader: {hooks.Base64(secret, body)},
	}
}

// resource is the body: the document as the API answers it, or only its id when it is gone.
func (f *Fake) resource(s *stores.Store, topic, id string) []byte {
	subject, event, _ := strings.Cut(topic, ".")
	n, err := numberOf(id)
	if err != nil {
		return marshal(object{"id": id})
	}
	if table := s.Tables[subject+"s"]; table != nil && event != "deleted" {
		if d, ok := table.Get(n); ok {
			return d.JSON
		}
	}
	return marshal(object{"id": n})
}
