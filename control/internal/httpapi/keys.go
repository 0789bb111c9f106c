package httpapi

import (
	"context"
	"net/http"

	"storefront.internal/control/internal/storekeys"
	"storefront.internal/shared/storekey"
)

// maxScopes bounds the array of scopes. The closed set is smaller, but a scope may be named twice.
const maxScopes = 64

// keyBody is a key in an answer. RevokedAt stays null, since only live keys are answered.
type keyBody struct {
	ID           string           `json:"api_key_id"`
	ConnectionID string           `json:"connection_id"`
	Scopes       []storekey.Scope `json:"scopes"`
	CreatedAt    timestamp        `json:"created_at"`
	RevokedAt    *timestamp       `json:"revoked_at"`
	Secret       string           `json:"secret,omitempty"`
}

func newKeyBody(k storekeys.Key) keyBody {
	return keyBody{ID: string(k.ID), ConnectionID: string(k.ConnectionID), Scopes: k.Scopes,
		CreatedAt: timestamp(k.CreatedAt), Secret: k.Secret}
}

// issueKey is issue_key.
func (a *API) issueKey(ctx context.Context, r *request) (reply, error) {
	scopes, err := readScopes(r.http)
	if err != nil {
		return reply{}, err
	}
	key, err := a.cfg.Keys.Issue(ctx, r.params.connection, scopes)
	if err != nil {
		return reply{}, err
	}
	return jsonReply(http.StatusCreated, newKeyBody(key))
}

// readScopes reads the optional body. An absent body, {} and empty scopes all mean every scope.
func readScopes(r *http.Request) ([]string, error) {
	raw, err := readBody(r)
	if err != nil || len(raw) == 0 {
		return nil, err
	}
	body, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	scopes := body.stringArray("scopes", maxScopes)
	return scopes, body.form.err()
}

// listKeys is list_keys.
func (a *API) listKeys(ctx context.Context, r *request) (reply, error) {
	keys, err := a.cfg.Keys.List(ctx, r.params.connection)
	if err != nil {
		return reply{}, err
	}
	out := struct {
		Keys []keyBody `json:"keys"`
	}{Keys: make([]keyBody, 0, len(keys))}
	for _, k := range keys {
		out.Keys = append(out.Keys, newKeyBody(k))
	}
	return jsonReply(http.StatusOK, out)
}

// revokeKey is revoke_key.
func (a *API) revokeKey(ctx context.Context, r *request) (reply, error) {
	if err := a.cfg.Keys.Revoke(ctx, r.params.connection, r.params.key); err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, nil
}
