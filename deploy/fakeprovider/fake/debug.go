package fake

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"storefront.internal/deploy/fakeprovider/behaviour"
	"storefront.internal/deploy/fakeprovider/docs"
	"storefront.internal/deploy/fakeprovider/hooks"
	"storefront.internal/deploy/fakeprovider/stores"
)

// debug serves the debug routes of one provider. At the root the query `provider` names it; the default is
// Tiendanube. The query (or member) `store` names a store; a request that names none is about all stores that
// were seen.
func (s *Server) debug(name string) http.Handler {
	mux := http.NewServeMux()
	on := func(pattern string, do func(target, http.ResponseWriter, *http.Request)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if t, ok := s.target(name, w, r); ok {
				do(t, w, r)
			}
		})
	}
	on("GET /debug/{kind}/{id}", show)
	on("PUT /debug/{kind}/{id}", change)
	on("DELETE /debug/{kind}/{id}", remove)
	on("GET /debug/{kind}", list)
	on("POST /debug/webhooks", sendWebhooks)
	on("GET /debug/subscriptions", subscriptions)
	on("POST /debug/stores", state)
	mux.HandleFunc(
		"POST /debug/behaviour",
		func(w http.ResponseWriter, r *http.Request) { s.behave(name, w, r) },
	)
	return mux
}

// target is what a debug request is about.
type target struct {
	provider provider
	stores   []string
}

func (s *Server) target(name string, w http.ResponseWriter, r *http.Request) (target, bool) {
	if name == "" {
		name = r.URL.Query().Get("provider")
	}
	if name == "" {
		name = Tiendanube
	}
	p, ok := s.providers[name]
	if !ok {
		fault(w, http.StatusNotFound, "there is no such provider")
		return target{}, false
	}
	return target{p, nil}.of(r.URL.Query().Get("store")), true
}

// of returns the target with one store, or with all that were seen.
func (t target) of(store string) target {
	if store != "" {
		t.stores = []string{store}
	} else if t.stores == nil {
		t.stores = t.provider.Stores()
	}
	return t
}

func show(t target, w http.ResponseWriter, r *http.Request) {
	err := stores.ErrNotFound
	for _, store := range t.stores {
		var doc json.RawMessage
		if doc, err = t.provider.Get(store, r.PathValue("kind"), r.PathValue("id")); err == nil {
			stores.WriteJSON(w, http.StatusOK, doc)
			return
		}
	}
	refuse(w, err)
}

func change(t target, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 8<<20))
	if err != nil {
		fault(w, http.StatusRequestEntityTooLarge, "more than 8 MiB")
		return
	}
	status := http.StatusOK
	for _, store := range t.stores {
		created, err := t.provider.Patch(store, r.PathValue("kind"), r.PathValue("id"), body)
		if err != nil {
			refuse(w, err)
			return
		}
		if created {
			status = http.StatusCreated
		}
	}
	doc, err := t.provider.Get(t.stores[0], r.PathValue("kind"), r.PathValue("id"))
	if err != nil {
		refuse(w, err)
		return
	}
	stores.WriteJSON(w, status, doc)
}

func remove(t target, w http.ResponseWriter, r *http.Request) {
	gone := false
	for _, store := range t.stores {
		gone = t.provider.Delete(store, r.PathValue("kind"), r.PathValue("id")) == nil || gone
	}
	if !gone {
		refuse(w, stores.ErrNotFound)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// list answers the ids of a kind; the kind `stores` lists the stores that were seen.
func list(t target, w http.ResponseWriter, r *http.Request) {
	kind := r.PathValue("kind")
	if kind == "stores" {
		stores.WriteJSON(w, http.StatusOK, map[string]any{"stores": t.provider.Stores()})
		return
	}
	ids, err := t.provider.IDs(t.stores[0], kind)
	if err != nil {
		refuse(w, err)
		return
	}
	stores.WriteJSON(w, http.StatusOK, map[string]any{"store": t.stores[0], "ids": ids})
}

type webhook struct {
	Topic      string `json:"topic"`
	ExternalID text   `json:"external_id"`
	Store      text   `json:"store"`
	Repeat     int    `json:"repeat"`
	Forge      forge  `json:"forge"`
	DelayMS    int    `json:"delay_ms"`
}

const mostRepeats = 100_000

func sendWebhooks(t target, w http.ResponseWriter, r *http.Request) {
	var in webhook
	if !decode(w, r, &in) {
		return
	}
	if in.Topic == "" || in.Repeat < 0 || in.Repeat > mostRepeats || in.DelayMS < 0 {
		fault(w, http.StatusBadRequest, "a topic is required, and numbers within bounds")
		return
	}
	options := hooks.Options{Repeat: in.Repeat, Forge: string(in.Forge), DelayMS: in.DelayMS}
	sent, reached := []hooks.Delivery{}, false
	err := stores.ErrNoSubscribers
	for _, store := range t.of(string(in.Store)).stores {
		var some []hooks.Delivery
		if some, err = t.provider.SendWebhook(store, in.Topic, string(in.ExternalID), options); err == nil {
			sent, reached = append(sent, some...), true
		}
	}
	if !reached {
		refuse(w, err)
		return
	}
	stores.WriteJSON(w, http.StatusAccepted, map[string]any{"deliveries": sent})
}

func subscriptions(t target, w http.ResponseWriter, _ *http.Request) {
	type shown struct {
		Store     string    `json:"store"`
		ID        int64     `json:"id"`
		Topic     string    `json:"topic"`
		URL       string    `json:"url"`
		Status    string    `json:"status,omitempty"`
		CreatedAt time.Time `json:"created_at"`
	}
	all := []shown{}
	for _, store := range t.stores {
		for _, h := range t.provider.Subscriptions(store) {
			all = append(all, shown{store, h.ID, h.Topic, h.URL, h.Status, h.Created.UTC()})
		}
	}
	stores.WriteJSON(w, http.StatusOK, map[string]any{"subscriptions": all})
}

func state(t target, w http.ResponseWriter, r *http.Request) {
	var in struct {
		Store text         `json:"store"`
		State stores.State `json:"state"`
	}
	if !decode(w, r, &in) {
		return
	}
	switch in.State {
	case stores.Active, stores.Suspended, stores.Uninstalled:
	default:
		fault(w, http.StatusBadRequest, "state is active, suspended or uninstalled")
		return
	}
	for _, store := range t.of(string(in.Store)).stores {
		t.provider.SetState(store, in.State)
	}
	w.WriteHeader(http.StatusNoContent)
}

// behave replaces the behaviour of one provider's API, or of all when none is named; `{}` ends it.
func (s *Server) behave(name string, w http.ResponseWriter, r *http.Request) {
	var in struct {
		API behaviour.Behaviour `json:"api"`
	}
	if !decode(w, r, &in) {
		return
	}
	if !in.API.Valid() {
		fault(w, http.StatusBadRequest, "a status of 200 to 599, no negative number, a known answer")
		return
	}
	if name == "" {
		name = r.URL.Query().Get("provider")
	}
	for n, p := range s.providers {
		if name == "" || name == n {
			p.SetBehaviour(in.API)
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		fault(w, http.StatusBadRequest, err.Error())
		return false
	}
	return true
}

// refuse writes an error of the stores.
func refuse(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, stores.ErrNotFound):
		fault(w, http.StatusNotFound, err.Error())
	case errors.Is(err, stores.ErrTopic):
		fault(w, http.StatusUnprocessableEntity, err.Error())
	case errors.Is(err, stores.ErrNoSubscribers):
		fault(w, http.StatusConflict, err.Error())
	case errors.Is(err, docs.ErrNoObject):
		fault(w, http.StatusBadRequest, err.Error())
	default:
		fault(w, http.StatusInternalServerError, err.Error())
	}
}

func fault(w http.ResponseWriter, status int, detail string) {
	stores.WriteJSON(w, status, map[string]string{"detail": detail})
}
