package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"storefront.internal/control/internal/connection"
)

// Bounds of E2's body, in characters.
const (
	maxExternalStoreID = 255
	maxProfileText     = 255
)

// createConnection is E2.
func (a *API) createConnection(ctx context.Context, r *request) (reply, error) {
	if err := a.cfg.Connections.Enabled(); err != nil {
		return reply{}, err
	}
	externalStoreID, profile, err := readConnection(r.http)
	if err != nil {
		return reply{}, err
	}
	created, err := a.cfg.Connections.Create(ctx, externalStoreID, profile)
	if err != nil {
		return reply{}, err
	}
	return jsonReply(http.StatusCreated, struct {
		ConnectionID string `json:"connection_id"`
		StoreID      string `json:"store_id"`
		Token        string `json:"token"`
	}{string(created.ConnectionID), string(created.StoreID), created.Token})
}

// rotateToken is E3.
func (a *API) rotateToken(ctx context.Context, r *request) (reply, error) {
	token, err := a.cfg.Connections.Rotate(ctx, r.params.connection)
	if err != nil {
		return reply{}, err
	}
	return jsonReply(http.StatusCreated, struct {
		Token string `json:"token"`
	}{token})
}

func readConnection(r *http.Request) (externalStoreID string, profile *connection.Profile, err error) {
	raw, err := readBody(r)
	if err != nil {
		return "", nil, err
	}
	body, err := parseObject(raw)
	if err != nil {
		return "", nil, err
	}
	id := body.boundedText("external_store_id", 1, maxExternalStoreID)
	if _, present := body.members["external_store_id"]; !present {
		body.form.fault("/external_store_id", "missing", "Is required.")
	}
	profile = body.profile("store_profile")
	if err := body.form.err(); err != nil {
		return "", nil, err
	}
	return *id, profile, nil
}

// profile returns a member that is a store's profile, or nil when it is absent or no object.
func (o *object) profile(name string) *connection.Profile {
	p := o.object(name)
	if p == nil {
		return nil
	}
	return &connection.Profile{
		Name:     p.boundedText("name", 0, maxProfileText),
		Domain:   p.boundedText("domain", 0, maxProfileText),
		Country:  p.boundedText("country", 0, maxProfileText),
		Language: p.boundedText("language", 0, maxProfileText),
		Currency: p.boundedText("currency", 0, maxProfileText),
	}
}

// boundedText is text that has least to most characters and no control character; nothing else can be stored.
func (o *object) boundedText(name string, least, most int) *string {
	s := o.text(name)
	if s == nil {
		return nil
	}
	if n := utf8.RuneCountInString(*s); n < least || n > most {
		o.form.fault(o.at(name), "invalid_length", "Has "+strconv.Itoa(least)+" to "+strconv.Itoa(most)+" characters.")
		return nil
	}
	if strings.ContainsFunc(*s, unicode.IsControl) {
		o.form.fault(o.at(name), "invalid_character", "Holds a control character.")
		return nil
	}
	return s
}
