package httpapi

import (
	"context"
	"encoding/hex"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"storefront.internal/control/internal/installation"
	"storefront.internal/shared/settings"
)

// Bounds of an installation's members, in characters.
const (
	maxProviderText     = 64
	maxAppID            = 255
	maxAccessToken      = 8192
	maxScope            = 8192
	browserProofDigits  = 64
	maxAttributionKey   = 64
	maxAttributionValue = 256
)

// openInstallation is open_installation.
func (a *API) openInstallation(ctx context.Context, r *request) (reply, error) {
	wanted, err := readInstallation(r.http)
	if err != nil {
		return reply{}, err
	}
	got, err := a.cfg.Installations.Open(ctx, r.caller.Provider, wanted)
	if err != nil {
		return reply{}, err
	}
	status := http.StatusOK
	if got.Created {
		status = http.StatusCreated
	}
	return jsonReply(status, struct {
		InstallationID string `json:"installation_id"`
		ConnectionID   string `json:"connection_id"`
		EndpointID     string `json:"webhook_endpoint_id"`
		Created        bool   `json:"created"`
	}{string(got.InstallationID), string(got.ConnectionID), string(got.EndpointID), got.Created})
}

// viewConnection is view_connection.
func (a *API) viewConnection(ctx context.Context, r *request) (reply, error) {
	v, err := a.cfg.Installations.Connection(ctx, r.params.connection)
	if err != nil {
		return reply{}, err
	}
	return jsonReply(http.StatusOK, newConnectionBody(&v))
}

type connectionBody struct {
	ConnectionID    string              `json:"connection_id"`
	StoreID         string              `json:"store_id"`
	Provider        string              `json:"provider"`
	ExternalStoreID string              `json:"external_store_id"`
	State           string              `json:"state"`
	Installation    *installationStatus `json:"installation,omitempty"`
	Disabled        *disabledStatus     `json:"disabled,omitempty"`
	RefusedAt       *timestamp          `json:"credential_refused_at,omitempty"`
}

type disabledStatus struct {
	At     timestamp `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
}

type installationStatus struct {
	ID     string `json:"installation_id"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

func newConnectionBody(v *installation.View) connectionBody {
	out := connectionBody{ConnectionID: string(v.ConnectionID), StoreID: string(v.StoreID),
		Provider: v.Provider, ExternalStoreID: v.ExternalStoreID, State: v.State}
	if i := v.Installation; i != nil {
		out.Installation = &installationStatus{string(i.ID), string(i.State), i.Reason}
	}
	if d := v.Disabled; d != nil {
		out.Disabled = &disabledStatus{timestamp(d.At), string(d.By), d.Reason}
	}
	if at := v.CredentialRefusedAt; at != nil {
		out.RefusedAt = optional(*at)
	}
	return out
}

func readInstallation(r *http.Request) (out installation.Request, err error) {
	body, err := readObject(r)
	if err != nil {
		return out, err
	}
	out = installation.Request{
		Provider:        body.requiredString("provider", maxProviderText),
		AppID:           body.requiredString("provider_app_id", maxAppID),
		ExternalStoreID: body.requiredString("external_store_id", maxExternalStoreID),
		AccessToken:     settings.Secret(body.requiredString("access_token", maxAccessToken)),
		Scope:           body.boundedString("scope", 0, maxScope),
		Profile:         body.profile("store_profile"),
		BrowserProof:    body.digest("browser_proof_sha256"),
		Attribution:     body.attribution("attribution"),
	}
	return out, body.form.err()
}

// digest returns a member that is a SHA-256 in hexadecimal digits, nil without one.
func (o *object) digest(name string) []byte {
	s := o.boundedString(name, browserProofDigits, browserProofDigits)
	if s == nil {
		return nil
	}
	sum, err := hex.DecodeString(*s)
	if err != nil {
		o.form.addError(o.at(name), "invalid_character", "Has hexadecimal digits only.")
		return nil
	}
	return sum
}

// attribution returns a member that is an object of short strings, nil without one.
func (o *object) attribution(name string) map[string]string {
	member := o.object(name)
	if member == nil {
		return nil
	}
	out := make(map[string]string, len(member.members))
	for _, key := range slices.Sorted(maps.Keys(member.members)) { // so that errors come in one order
		member.attributionEntry(out, key)
	}
	return out
}

// attributionEntry reads one entry. The client chose its key, so the pointer escapes it.
func (o *object) attributionEntry(into map[string]string, key string) {
	pointer := o.pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
	if utf8.RuneCountInString(key) > maxAttributionKey {
		o.form.addError(o.pointer, "invalid_length", "A key has at most 64 characters.")
		return
	}
	v := o.members[key]
	if v.Kind() != jsontext.KindString {
		o.form.addError(pointer, "wrong_type", "Must be a string.")
		return
	}
	value := unquote(v)
	if utf8.RuneCountInString(value) > maxAttributionValue {
		o.form.addError(pointer, "invalid_length", "Has at most 256 characters.")
		return
	}
	into[key] = value
}
