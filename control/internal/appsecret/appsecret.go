// Package appsecret owns the secrets of our apps at providers, with which a provider signs its webhooks. They
// come from the configuration: each app has a current secret and may have the next one. Adapters verify
// signatures with them.
package appsecret

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/settings"
)

// The shortest secret, in characters, and the most secrets of an app. A secret that is shorter than strong,
// or has fewer different characters than distinct, can be guessed: a merchant sees a value that is derived
// from the secret and can try candidates offline.
const (
	minLength = 8
	strong    = 24
	distinct  = 8
	maxValues = 2
)

// App is one of our apps at a provider.
type App struct{ Provider, ID string }

// Keyring holds the secrets of every app. It does not change after Parse.
type Keyring struct{ secrets map[App][]settings.Secret }

// Parse reads "provider/app_id:secret[|next],…"; an empty setting has no apps. It reports all errors and
// quotes no secret.
func Parse(setting string) (*Keyring, error) {
	k := &Keyring{secrets: make(map[App][]settings.Secret)}
	if strings.TrimSpace(setting) == "" {
		return k, nil
	}
	var errs []error
	for i, part := range strings.Split(setting, ",") {
		if err := k.add(strings.TrimSpace(part)); err != nil {
			errs = append(errs, fmt.Errorf("app %d: %w", i+1, err))
		}
	}
	return k, errors.Join(errs...)
}

func (k *Keyring) add(part string) error {
	name, values, ok := strings.Cut(part, ":")
	provider, id, named := strings.Cut(name, "/")
	if !ok || !named || provider == "" || id == "" {
		return errors.New("want provider/app_id:secret[|next]")
	}
	app := App{Provider: provider, ID: id}
	if k.secrets[app] != nil {
		return errors.New("named twice; give both values as secret|next")
	}
	all := strings.Split(values, "|")
	if len(all) > maxValues {
		return fmt.Errorf("at most %d values, the current and the next", maxValues)
	}
	for _, value := range all {
		if len(value) < minLength || strings.ContainsFunc(value,
			func(r rune) bool { return r <= ' ' || r > '~' }) {
			return fmt.Errorf("a secret is at least %d visible ASCII characters", minLength)
		}
		k.secrets[app] = append(k.secrets[app], settings.Secret(value))
	}
	return nil
}

// CheckStrength names the apps whose secrets can be guessed.
func (k *Keyring) CheckStrength() error {
	var weak []string
	for app, secrets := range k.secrets {
		if slices.ContainsFunc(secrets, isWeak) {
			weak = append(weak, app.Provider+"/"+app.ID)
		}
	}
	if weak == nil {
		return nil
	}
	slices.Sort(weak)
	return fmt.Errorf("a secret has at least %d characters, %d different ones among them: %s",
		strong, distinct, strings.Join(weak, ", "))
}

func isWeak(secret settings.Secret) bool {
	seen := make(map[rune]bool)
	for _, c := range secret.Reveal() {
		seen[c] = true
	}
	return len(secret) < strong || len(seen) < distinct
}

// Has reports whether the app has a secret.
func (k *Keyring) Has(app App) bool { return len(k.secrets[app]) > 0 }

// SubscriptionSecret is the secret of an endpoint's subscription, where the provider takes one. It is derived
// for the endpoint, so that a merchant who reads it in the shop's settings cannot sign for another shop. ""
// without an app secret.
func (k *Keyring) SubscriptionSecret(app App, endpoint ident.EndpointID) settings.Secret {
	if !k.Has(app) {
		return ""
	}
	return derive(k.secrets[app][0], endpoint)
}

// Fingerprint identifies the secret from which subscription secrets are derived. "" for an app without a
// secret.
func (k *Keyring) Fingerprint(app App) string {
	if !k.Has(app) {
		return ""
	}
	const length = 16
	return derive(k.secrets[app][0], "mark").Reveal()[:length]
}

// VerificationSecrets are the secrets with which a webhook to an endpoint may be signed: the app's secrets
// and those of subscriptions that are derived from them. None for an app without a secret.
func (k *Keyring) VerificationSecrets(app App, endpoint ident.EndpointID) []settings.Secret {
	out := append([]settings.Secret(nil), k.secrets[app]...)
	for _, secret := range k.secrets[app] {
		out = append(out, derive(secret, endpoint))
	}
	return out
}

// derive returns the secret of an endpoint: hexadecimal digits, which every provider accepts.
func derive(secret settings.Secret, endpoint ident.EndpointID) settings.Secret {
	mac := hmac.New(sha256.New, []byte(secret.Reveal()))
	mac.Write([]byte("storefront endpoint " + string(endpoint)))
	return settings.Secret(hex.EncodeToString(mac.Sum(nil)))
}

// String implements fmt.Stringer. It hides the secrets.
func (*Keyring) String() string { return "***" }

// GoString implements fmt.GoStringer.
func (*Keyring) GoString() string { return "***" }
