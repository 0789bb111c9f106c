// Package connection owns custom connections and the tokens of their connectors. A token is random, is shown
// once, and is stored as an HMAC under the pepper of the configuration; without a pepper custom connectors
// are off. Connections of providers are made by package installation.
package connection

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// ProviderCustom is the provider of custom connections.
const ProviderCustom = "custom"

// TokenPrefix starts every custom connector's token, so that people and leak scanners recognise tokens.
const TokenPrefix = "sct_"

// tokenBytes is the number of random bytes in a token, tokenLength its characters.
const tokenBytes = 32

const tokenLength = len(TokenPrefix) + (tokenBytes*8+5)/6

// Profile describes a shop, without secrets and personal data. A nil member is unknown.
type Profile struct {
	Name     *string `json:"name,omitempty"`
	Domain   *string `json:"domain,omitempty"`
	Country  *string `json:"country,omitempty"`
	Language *string `json:"language,omitempty"`
	Currency *string `json:"currency,omitempty"`
}

// NewConnection is a custom connection to be stored, with its token's HMAC.
type NewConnection struct {
	ID              ident.ConnectionID
	StoreID         ident.StoreID
	ExternalStoreID string
	Profile         *Profile
	TokenID         ident.ConnectorTokenID
	TokenHMAC       [sha256.Size]byte
}

// Created is a new connection. The token is shown here only.
type Created struct {
	ConnectionID ident.ConnectionID
	StoreID      ident.StoreID
	Token        string
}

// Store is where connections are stored.
type Store interface {
	// CreateCustom stores a connection; it returns store_connected when the external store has one.
	CreateCustom(ctx context.Context, c NewConnection) error
	// ReplaceToken returns not_found for a connection that does not exist or is not custom.
	ReplaceToken(ctx context.Context, c ident.ConnectionID, id ident.ConnectorTokenID,
		mac [sha256.Size]byte) error
	// HolderOf returns the custom connection whose token has the HMAC, or not_found.
	HolderOf(ctx context.Context, mac [sha256.Size]byte) (Custom, error)
}

// Custom is the connection of a connector's token.
type Custom struct {
	ID       ident.ConnectionID
	StoreID  ident.StoreID
	Disabled bool
}

// disabledRetryAfter is when a connector may try again after its connection was found disabled.
const disabledRetryAfter = 5 * time.Minute

// Service creates custom connections and rotates their tokens.
type Service struct {
	store  Store
	pepper []byte
	now    func() time.Time
}

// New returns a Service. An empty pepper switches the custom-connector principal off.
func New(store Store, pepper []byte, now func() time.Time) *Service {
	return &Service{store: store, pepper: pepper, now: now}
}

// Enabled returns principal_off while the custom-connector principal is off.
func (s *Service) Enabled() error {
	if len(s.pepper) == 0 {
		return fault.New(fault.PrincipalOff, "Custom connectors are switched off.")
	}
	return nil
}

// Create creates the custom connection of an external store.
func (s *Service) Create(ctx context.Context, externalStoreID string, profile *Profile) (Created, error) {
	if err := s.Enabled(); err != nil {
		return Created{}, err
	}
	token := newToken()
	c := NewConnection{
		ID:              ident.ConnectionID(ident.Mint(ident.Connection, s.now())),
		StoreID:         ident.StoreID(ident.Mint(ident.Store, s.now())),
		ExternalStoreID: externalStoreID,
		Profile:         profile,
		TokenID:         s.newTokenID(),
		TokenHMAC:       s.mac(token),
	}
	if err := s.store.CreateCustom(ctx, c); err != nil {
		return Created{}, err
	}
	return Created{ConnectionID: c.ID, StoreID: c.StoreID, Token: token}, nil
}

// Rotate replaces the token of a custom connection. The old one is invalid at once.
func (s *Service) Rotate(ctx context.Context, c ident.ConnectionID) (token string, err error) {
	if err := s.Enabled(); err != nil {
		return "", err
	}
	token = newToken()
	if err := s.store.ReplaceToken(ctx, c, s.newTokenID(), s.mac(token)); err != nil {
		return "", err
	}
	return token, nil
}

// Identify returns the custom connection c when the token is its token, else unauthorized. A disabled one is
// service_unavailable, so that its connector keeps what it has. Every call looks
// the token up, so a rotated token is invalid at once; text without the form of a token is not looked up.
func (s *Service) Identify(ctx context.Context, c ident.ConnectionID, token string) (Custom, error) {
	if s.Enabled() != nil || !strings.HasPrefix(token, TokenPrefix) || len(token) != tokenLength {
		return Custom{}, fault.New(fault.Unauthorized, "")
	}
	holder, err := s.store.HolderOf(ctx, s.mac(token))
	if fault.Is(err, fault.NotFound) || err == nil && holder.ID != c {
		return Custom{}, fault.New(fault.Unauthorized, "")
	}
	if err == nil && holder.Disabled {
		return Custom{}, &fault.Error{Code: fault.ServiceUnavailable,
			Detail: "The connection is disabled by an operator.", RetryAfter: disabledRetryAfter}
	}
	return holder, err
}

func (s *Service) newTokenID() ident.ConnectorTokenID {
	return ident.ConnectorTokenID(ident.Mint(ident.ConnectorToken, s.now()))
}

func (s *Service) mac(token string) (mac [sha256.Size]byte) {
	h := hmac.New(sha256.New, s.pepper)
	h.Write([]byte(token))
	h.Sum(mac[:0])
	return mac
}

func newToken() string {
	var b [tokenBytes]byte
	_, _ = rand.Read(b[:]) // never fails: the runtime ends the process instead
	return TokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}
