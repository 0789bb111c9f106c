// Package appsecret owns the secrets of our apps at providers, by which a provider signs what it sends (spec.md
// "Internal surface: four principals", rule 3). They come from configuration: each app has a current secret and may
// have the next. The package refuses to verify: an adapter does, with what this package gives.
package appsecret

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/settings"
)

// The bounds of a secret: how short one may be, in characters, and how many an app may have at a time.
const (
	minLength = 8
	maxValues = 2
)

// App is one of our apps at a provider.
type App struct{ Provider, ID string }

// Book knows the secrets of every app. It does not change after Parse.
type Book struct{ secrets map[App][]settings.Secret }

// Parse reads "provider/app_id:secret[|next],…"; an empty setting is a book without apps. It reports every fault at
// once and never quotes a secret.
func Parse(setting string) (*Book, error) {
	b := &Book{secrets: make(map[App][]settings.Secret)}
	if strings.TrimSpace(setting) == "" {
		return b, nil
	}
	var faults []error
	for i, part := range strings.Split(setting, ",") {
		if err := b.add(strings.TrimSpace(part)); err != nil {
			faults = append(faults, fmt.Errorf("app %d: %w", i+1, err))
		}
	}
	return b, errors.Join(faults...)
}

func (b *Book) add(part string) error {
	name, values, ok := strings.Cut(part, ":")
	provider, id, named := strings.Cut(name, "/")
	if !ok || !named || provider == "" || id == "" {
		return errors.New("want provider/app_id:secret[|next]")
	}
	app := App{Provider: provider, ID: id}
	if b.secrets[app] != nil {
		return errors.New("named twice; give both values as secret|next")
	}
	all := strings.Split(values, "|")
	if len(all) > maxValues {
		return fmt.Errorf("at most %d values, the current and the next", maxValues)
	}
	for _, value := range all {
		if len(value) < minLength || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return fmt.Errorf("a secret is at least %d visible ASCII characters", minLength)
		}
		b.secrets[app] = append(b.secrets[app], settings.Secret(value))
	}
	return nil
}

// Has reports whether the app has a secret.
func (b *Book) Has(app App) bool { return len(b.secrets[app]) > 0 }

// Subscribing is the secret that a subscription which takes one is made with. It is of the endpoint alone, so that a
// merchant who reads it in the shop's own pages cannot sign for another shop. "" for an app without a secret.
func (b *Book) Subscribing(app App, endpoint ident.EndpointID) settings.Secret {
	if !b.Has(app) {
		return ""
	}
	return derive(b.secrets[app][0], endpoint)
}

// Mark tells one secret that subscriptions are made with from another. It is a fingerprint; "" for an app without a secret.
func (b *Book) Mark(app App) string {
	if !b.Has(app) {
		return ""
	}
	const length = 16
	return derive(b.secrets[app][0], "mark").Reveal()[:length]
}

// Verifying are the secrets that a delivery to an endpoint may be signed with: the app's, current and next, and those
// of the endpoint's subscription made of them. None for an app without a secret.
func (b *Book) Verifying(app App, endpoint ident.EndpointID) []settings.Secret {
	out := append([]settings.Secret(nil), b.secrets[app]...)
	for _, secret := range b.secrets[app] {
		out = append(out, derive(secret, endpoint))
	}
	return out
}

// derive makes the secret of an endpoint: hexadecimal digits, which every provider takes.
func derive(secret settings.Secret, endpoint ident.EndpointID) settings.Secret {
	mac := hmac.New(sha256.New, []byte(secret.Reveal()))
	mac.Write([]byte("storefront endpoint " + string(endpoint)))
	return settings.Secret(hex.EncodeToString(mac.Sum(nil)))
}

// String implements fmt.Stringer: the members are secrets.
func (*Book) String() string { return "***" }

// GoString implements fmt.GoStringer.
func (*Book) GoString() string { return "***" }
