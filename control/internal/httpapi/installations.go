package httpapi

import (
	"context"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"storefront.internal/control/internal/installation"
	"storefront.internal/shared/settings"
)

// Bounds of operation 5's body, in characters.
const (
	maxProviderText     = 64
	maxAppID            = 255
	maxAccessToken      = 8192
	maxScope            = 8192
	browserProofDigits  = 64
	maxAttributionKey   = 64
	maxAttributionValue = 256
)

// openInstallation is operation 5.
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

// viewConnection is E7.
func (a *API) viewConnection(ctx context.Context, r *request) (reply, error) {
	v, err := a.cfg.Installations.Connection(ctx, r.params.connection)
	if err != nil {
		return reply{}, err
	}
	type status struct {
		ID     string `json:"installation_id"`
		State  string `json:"state"`
		Reason string `json:"reason,omitempty"`
	}
	out := struct {
		ConnectionID    string  `json:"connection_id"`
		StoreID         string  `json:"store_id"`
		Provider        string  `json:"provider"`
		ExternalStoreID string  `json:"external_store_id"`
		State           string  `json:"state"`
		Installation    *status `json:"installation,omitempty"`
	}{string(v.ConnectionID), string(v.StoreID), v.Provider, v.ExternalStoreID, v.State, nil}
	if i := v.Installation; i != nil {
		out.Installation = &status{string(i.ID), string(i.State), i.Reason}
	}
	return jsonReply(http.StatusOK, out)
}

func readInstallation(r *http.Request) (out installation.Request, err error) {
	raw, err := readBody(r)
	if err != nil {
		return out, err
	}
	body, err := parseObject(raw)
	if err != nil {
		return out, err
	}
	provider := body.requiredText("provider", maxProviderText)
	app := body.requiredText("provider_app_id", maxAppID)
	store := body.requiredText("external_store_id", maxExternalStoreID)
	token := body.requiredText("access_token", maxAccessToken)
	out = installation.Request{
		Provider: provider, AppID: app, ExternalStoreID: store, AccessToken: settings.Secret(token),
		Scope:        body.boundedText("scope", 0, maxScope),
		Profile:      body.profile("store_profile"),
		BrowserProof: body.digest("browser_proof_sha256"),
		Attribution:  body.marks("attribution"),
	}
	return out, body.form.err()
}

// requiredText is text of at least one character that must be there, or "" with a fault.
func (o *object) requiredText(name string, most int) string {
	if _, present := o.members[name]; !present {
		o.form.fault(o.at(name), "missing", "Is required.")
	}
	if s := o.boundedText(name, 1, most); s != nil {
		return *s
	}
	return ""
}

// digest returns a member that is a SHA-256 in hexadecimal digits, or nil.
func (o *object) digest(name string) []byte {
	s := o.boundedText(name, browserProofDigits, browserProofDigits)
	if s == nil {
		return nil
	}
	sum, err := hex.DecodeString(*s)
	if err != nil {
		o.form.fault(o.at(name), "invalid_character", "Has hexadecimal digits only.")
		return nil
	}
	return sum
}

// marks returns a member that is an object of short texts, or nil.
func (o *object) marks(name string) map[string]string {
	member := o.object(name)
	if member == nil {
		return nil
	}
	out := make(map[string]string, len(member.members))
	names := make([]string, 0, len(member.members))
	for key := range member.members {
		names = append(names, key)
	}
	slices.Sort(names) // faults come in one order
	for _, key := range names {
		member.mark(out, key)
	}
	return out
}

// mark reads one mark. Its name is the client's, and is escaped in a pointer.
func (o *object) mark(into map[string]string, key string) {
	pointer := o.pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
	if utf8.RuneCountInString(key) > maxAttributionKey {
		o.form.fault(o.pointer, "invalid_length", "A key has at most 64 characters.")
		return
	}
	v := o.members[key]
	if v.Kind() != jsontext.KindString {
		o.form.fault(pointer, "wrong_type", "Must be a string.")
		return
	}
	value := unquote(v)
	if utf8.RuneCountInString(value) > maxAttributionValue {
		o.form.fault(pointer, "invalid_length", "Has at most 256 characters.")
		return
	}
	into[key] = value
}
