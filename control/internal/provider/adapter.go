package provider

import (
	"context"
	"log/slog"
	"time"

	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/settings"
)

// Store is one shop at a provider, with what it takes to call for it.
type Store struct {
	ConnectionID    ident.ConnectionID
	ExternalStoreID string
	Credential      settings.Secret // the access_token of the installation; it prints as ***
	Profile         Profile
}

// Profile is what a shop says of itself (spec.md "Installation request", store_profile). Empty strings are unknown.
type Profile struct {
	Name, Domain, Country string
	Language              string // the store's main language, which texts in one language are keyed by
	Currency              string // of prices that come without one
}

// Form is how Raw is to be read.
type Form string

// The closed set of forms.
const (
	JSON  Form = "application/json"  // one value
	JSONL Form = "application/jsonl" // several values, each on a line of its own: what a resource came in more than one piece as
)

// Fetched is what a provider returned for one entity.
type Fetched struct {
	Entity          catalog.Entity
	ExternalID      string
	Document        catalog.Document // passes the catalog's rules; nil when Gone or Malformed
	Gone            bool             // the provider says that there is no such entity
	Malformed       *Malformed       // why there is no document though there is an entity: it goes to quarantine
	SourceUpdatedAt time.Time        // the provider's; zero when it does not say. It orders nothing

	// Raw are the exact bytes that the provider returned for this entity: the body of an answer about it alone, its span
	// in a page, the lines of a bulk file. Pieces that took several answers are joined by a line feed (Form JSONL).
	Raw  []byte
	Form Form
}

// Cursor is a place in a listing, as text of the adapter's own that survives a restart. "" is the start.
type Cursor string

// Page is a part of a listing.
type Page struct {
	Items []Fetched // an entity may come twice, in one page or in two; the later one is the newer
	Next  Cursor    // "" at the end

	// After is how long the provider needs to prepare what Next names (a bulk export that is not ready): the page is empty
	// and the caller comes back. 0 means at once.
	After time.Duration

	// Begins says that the provider takes a snapshot during this call, Exported that the items are of the last one that
	// began: they are as old as that call, not as this one. A caller that orders fetches by the sequence number which it
	// takes before each call uses for exported items the number of the call that began.
	Begins, Exported bool
}

// Kind is what a notification is about.
type Kind string

// The closed set of kinds.
const (
	Changed        Kind = "changed"
	Deleted        Kind = "deleted"
	Uninstalled    Kind = "uninstalled"     // to be confirmed: Profile answers *Refused
	Suspended      Kind = "suspended"       // to be confirmed: Profile answers *Paused
	Resumed        Kind = "resumed"         // to be confirmed: Profile answers
	RedactCustomer Kind = "redact_customer" // a privacy request; Topic.Orders are those that it names
	RedactStore    Kind = "redact_store"
	DataRequest    Kind = "data_request"
	Ping           Kind = "ping"    // says that the address works
	Unclear        Kind = "unclear" // something changed and the notification does not say what: a catch-up finds it
	Ignored        Kind = "ignored" // known to be of no interest
)

// Topic is what a notification says. All of it is a hint.
type Topic struct {
	Kind       Kind
	Entity     catalog.Entity // of Changed and Deleted
	ExternalID string         // of Changed and Deleted

	// ExternalStoreID is the store that a signed body names, "" when it names none. One secret signs for every store of an
	// app, so a caller compares it with the store of the endpoint.
	ExternalStoreID string
	Orders          []string // external ids, of RedactCustomer and DataRequest
	Customer        Customer // of RedactCustomer and DataRequest
}

// Customer is whom a privacy request is about, as far as the provider says. It prints as a placeholder.
type Customer struct{ ID, Email, Phone, Identification string }

// String hides the customer.
func (Customer) String() string { return "[customer]" }

// GoString hides the customer.
func (Customer) GoString() string { return "[customer]" }

// LogValue hides the customer.
func (Customer) LogValue() slog.Value { return slog.StringValue("[customer]") }

// Subscription is one notification that a provider was asked to send.
type Subscription struct {
	ID       string // the provider's; "" of one that is wanted
	Topic    string // the provider's text
	URL      string
	Secret   settings.Secret // of providers that take one per subscription; never read back
	Disabled bool            // the provider has it and does not send: to be removed and made anew
}

// Adapter is one platform. Errors of the calls are those of this package; a caller asks Retry.
type Adapter interface {
	// Name is the provider of operations 5 and 12.
	Name() string

	// Verify reports whether the signature, in the provider's own text, is that of the raw body under one of the secrets
	// (current and next). An empty secret verifies nothing.
	Verify(secrets []settings.Secret, signature string, body []byte) bool

	// Ping reports whether a body is the provider's unsigned trial of the address, which is answered with 200 and
	// registers nothing.
	Ping(body []byte) bool

	// Topic reads a notification whose signature holds. hint is the endpoint's topic, or the header that came along, or "".
	Topic(hint string, body []byte) (Topic, error)

	// Fetch returns one entity as it is now. With a *Malformed it still returns Raw.
	Fetch(ctx context.Context, s Store, e catalog.Entity, externalID string) (Fetched, error)

	// Page returns a part of all entities, or of those that were updated at or after since. A listing does not tell of
	// entities that are gone.
	Page(ctx context.Context, s Store, e catalog.Entity, since time.Time, c Cursor) (Page, error)

	// Profile asks the shop about itself. It is the cheapest call that needs the credential.
	Profile(ctx context.Context, s Store) (Profile, error)

	// Topics are the notifications that are wanted. Entities that none of them tells of need a catch-up.
	Topics() []string

	// Subscriptions lists what the provider has, of this app and store, to whatever URL.
	Subscriptions(ctx context.Context, s Store) ([]Subscription, error)

	// Subscribe makes one and returns it with its ID; one that is there already is returned where the provider says so.
	Subscribe(ctx context.Context, s Store, want Subscription) (Subscription, error)

	// Unsubscribe removes one; one that is not there is no error.
	Unsubscribe(ctx context.Context, s Store, id string) error
}

// Rekeyer is an Adapter whose subscriptions have a secret each, which is never read back.
type Rekeyer interface {
	// Rekey gives a subscription another secret.
	Rekey(ctx context.Context, s Store, id string, secret settings.Secret) error
}
