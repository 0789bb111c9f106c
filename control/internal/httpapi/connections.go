package httpapi

import (
	"context"
	"net/http"

	"storefront.internal/control/internal/connection"
)

// The longest texts of a connection, in characters.
const (
	maxExternalStoreID = 255
	maxProfileText     = 255
)

// createConnection is create_connection.
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

// rotateToken is rotate_token.
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
	body, err := readObject(r)
	if err != nil {
		return "", nil, err
	}
	externalStoreID = body.requiredString("external_store_id", maxExternalStoreID)
	profile = body.profile("store_profile")
	return externalStoreID, profile, body.form.err()
}

// profile returns a member that is a store's profile, nil without one.
func (o *object) profile(name string) *connection.Profile {
	p := o.object(name)
	if p == nil {
		return nil
	}
	return &connection.Profile{
		Name:     p.boundedString("name", 0, maxProfileText),
		Domain:   p.boundedString("domain", 0, maxProfileText),
		Country:  p.boundedString("country", 0, maxProfileText),
		Language: p.boundedString("language", 0, maxProfileText),
		Currency: p.boundedString("currency", 0, maxProfileText),
	}
}
