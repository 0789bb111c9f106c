package provider

import (
	"context"
	"log/slog"
	"time"

	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/settings"
)

// Shop is one merchant's shop at a provider, with what is needed to call it.
type Shop struct {
	ConnectionID    ident.ConnectionID
	ExternalStoreID string
	Credential      settings.Secret // the access_token of the installation; it prints as ***
	Profile         Profile
}

// Profile is what a shop says about itself. Empty strings are unknown.
type Profile struct {
	Name, Domain, Country string
	Language              string // the shop's main language: the key of texts that come in one language
	Currency              string // of prices that come without one
}

// RawFormat is the format of Raw.
type RawFormat string

// The closed set of forms.
const (
	JSON  RawFormat = "application/json"  // one value
	JSONL RawFormat = "application/jsonl" // several values, one a line: an entity that came in several pieces
)

// MaxRaw bounds the bytes of one entity that come in several responses. The document that is made of them has
// a bound of its own.
const MaxRaw = 16 << 20

// Fetched is what a provider returned for one entity.
type Fetched struct {
	Entity          catalog.Entity
	ExternalID      string
	Document        catalog.Document // passes the catalog's rules; nil when Gone or Malformed
	Gone            bool             // the provider says that there is no such entity
	Malformed       *Malformed       // the entity exists and breaks a rule: it is quarantined
	SourceUpdatedAt time.Time        // the provider's, zero when unknown; it is not used for ordering

	// Raw are the exact bytes that the provider returned for this entity: the body of a response about it
	// alone, its part of a page, or its lines of a bulk file. Parts of several responses are joined by a line
	// feed (JSONL).
	Raw       []byte
	RawFormat RawFormat
}

// Cursor is a position in a listing. Its text is the adapter's own and survives a restart; "" is the start.
type Cursor string

// Page is a part of a listing.
type Page struct {
	Items []Fetched // an entity may come twice, in one page or in two; the later one is newer
	Next  Cursor    // "" at the end

	// ReadyAfter is how long the provider needs to prepare the next page (a bulk export that is not ready).
	// The page is empty and the caller comes back later. 0 means at once.
	ReadyAfter time.Duration

	// SnapshotStarted says that the provider takes a snapshot during this call. FromSnapshot says that the
	// items are of the last snapshot, so they are as old as the call that started it. A caller that orders
	// fetches by a sequence number taken before each call uses the number of that call for them.
	SnapshotStarted, FromSnapshot bool
}

// EventKind is what a webhook is about.
type EventKind string

// The closed set of kinds.
const (
	Changed        EventKind = "changed"
	Deleted        EventKind = "deleted"
	Uninstalled    EventKind = "uninstalled"     // confirmed when Profile fails with *CredentialRefused
	Suspended      EventKind = "suspended"       // confirmed when Profile fails with *ShopSuspended
	Resumed        EventKind = "resumed"         // confirmed when Profile succeeds
	RedactCustomer EventKind = "redact_customer" // a privacy request; Orders are the orders that it names
	RedactShop     EventKind = "redact_store"
	DataRequest    EventKind = "data_request"
	Ping           EventKind = "ping"    // the provider tries the address
	Unspecified    EventKind = "unclear" // something changed; a catch-up finds out what
	Ignored        EventKind = "ignored" // known, and of no interest
)

// IsPrivacy reports whether a webhook is a request about personal data.
func (k EventKind) IsPrivacy() bool {
	return k == RedactCustomer || k == RedactShop || k == DataRequest
}

// WebhookEvent is what a webhook says. All of it is a hint.
type WebhookEvent struct {
	Kind       EventKind
	Entity     catalog.Entity // of Changed and Deleted
	ExternalID string         // of Changed and Deleted

	// ExternalStoreID is the shop that a signed body names, "" when it names none. One secret signs for all
	// shops of an app, so a caller compares it with the shop of the endpoint.
	ExternalStoreID string
	Orders          []string // external ids, of RedactCustomer and DataRequest
	Customer        Customer // of RedactCustomer and DataRequest
}

// Customer is the subject of a privacy request, as far as the provider says. It prints as a placeholder.
type Customer struct{ ID, Email, Phone, Identification string }

// String hides the customer.
func (Customer) String() string { return "[customer]" }

// GoString hides the customer.
func (Customer) GoString() string { return "[customer]" }

// LogValue hides the customer.
func (Customer) LogValue() slog.Value { return slog.StringValue("[customer]") }

// Subscription is one webhook that a provider is asked to send.
type Subscription struct {
	ID       string // the provider's; "" before it is made
	Topic    string // the provider's text
	URL      string
	Secret   settings.Secret // where each subscription has its own; it cannot be read back
	Disabled bool            // the provider does not send it: to be removed and made again
}

// Adapter is one platform. Calls fail with the errors of this package; RetryAfter says whether to retry.
type Adapter interface {
	// Name is the provider's name in control's API.
	Name() string

	// VerifySignature reports whether the signature, as the provider writes it, is that of the raw body under
	// one of the secrets (current and next). An empty secret verifies nothing.
	VerifySignature(secrets []settings.Secret, signature string, body []byte) bool

	// IsPing reports whether a body is the provider's unsigned test of the address. It is answered with 200
	// and has no effect.
	IsPing(body []byte) bool

	// WebhookEvent reads a notification whose signature holds. hint is the endpoint's topic, or the header
	// that came along, or "".
	ParseWebhook(hint string, body []byte) (WebhookEvent, error)

	// Fetch returns one entity as it is now. With a *Malformed it still returns Raw.
	Fetch(ctx context.Context, s Shop, e catalog.Entity, externalID string) (Fetched, error)

	// Page returns a part of all entities, or of those that were updated at or after since. A listing does
	// not tell of deleted entities.
	Page(ctx context.Context, s Shop, e catalog.Entity, since time.Time, c Cursor) (Page, error)

	// Profile asks the shop about itself. It is the cheapest call that needs the credential.
	Profile(ctx context.Context, s Shop) (Profile, error)

	// WebhookTopics are the topics to subscribe to. Entities that none of them tells of need a catch-up.
	WebhookTopics() []string

	// Subscriptions lists the provider's subscriptions of this app and shop, to any URL.
	Subscriptions(ctx context.Context, s Shop) ([]Subscription, error)

	// Subscribe makes a subscription and returns it with its ID. Where the provider refuses a duplicate, the
	// existing one is returned.
	Subscribe(ctx context.Context, s Shop, want Subscription) (Subscription, error)

	// Unsubscribe removes a subscription. It is no error when there is none.
	Unsubscribe(ctx context.Context, s Shop, id string) error
}

// SecretRotator is an Adapter whose subscriptions have a secret each, which cannot be read back.
type SecretRotator interface {
	// RotateSecret replaces the secret of a subscription.
	RotateSecret(ctx context.Context, s Shop, id string, secret settings.Secret) error
}
