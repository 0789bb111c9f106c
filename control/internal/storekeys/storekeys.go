// Package storekeys owns storefront keys: they are issued, listed and revoked here, and published to the
// edges through Redis. A secret exists in clear only on its way into or out of an answer: it is stored
// sealed, and found by its digest. Edges check requests against the published scopes and connection.
package storekeys

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"storefront.internal/control/internal/seal"
	"storefront.internal/shared/failpoint"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/storekey"
)

// Key is a live key. Secret is empty for a key that exists as a digest only.
type Key struct {
	ID           ident.KeyID
	ConnectionID ident.ConnectionID
	Scopes       []storekey.Scope
	CreatedAt    time.Time
	Secret       string
}

// SealedKey is a stored key. Sealed is nil for a key that exists as a digest only.
type SealedKey struct {
	ID           ident.KeyID
	ConnectionID ident.ConnectionID
	Digest       [32]byte
	Sealed       []byte
	Scopes       []storekey.Scope
	CreatedAt    time.Time
}

// Store is where keys are stored. InsertKey and RevokeKey raise the key version in the same transaction. They
// return not_found for a connection or key that does not exist.
type Store interface {
	InsertKey(ctx context.Context, k SealedKey) (createdAt time.Time, version int64, err error)
	LiveKeys(ctx context.Context, c ident.ConnectionID) ([]SealedKey, error)
	// RevokeKey returns the key's last change, without its token.
	RevokeKey(ctx context.Context, c ident.ConnectionID, k ident.KeyID) (storekey.Change, error)
}

// Config is what a Service is made of.
type Config struct {
	Store     Store
	Sealer    *seal.Sealer
	Publisher *Publisher
	Logger    *slog.Logger
	Now       func() time.Time
}

// Service issues, lists and revokes keys.
type Service struct{ cfg Config }

// New returns a Service.
func New(cfg Config) *Service { return &Service{cfg: cfg} }

// Issue creates a key of a connection. Without scopes it has all of them; an unknown one is unknown_scope.
// When Issue returns, Redis has the key, or the sweep repeats the push until it has.
func (s *Service) Issue(ctx context.Context, c ident.ConnectionID, scopes []string) (Key, error) {
	granted, err := parseScopes(scopes)
	if err != nil {
		return Key{}, err
	}
	secret := storekey.NewSecret()
	k := SealedKey{
		ID:           ident.KeyID(ident.Mint(ident.Key, s.cfg.Now())),
		ConnectionID: c,
		Digest:       storekey.Digest([]byte(secret)),
		Scopes:       granted,
	}
	if k.Sealed, err = s.cfg.Sealer.Seal([]byte(secret), binding(k)); err != nil {
		return Key{}, err
	}
	var version int64
	if k.CreatedAt, version, err = s.cfg.Store.InsertKey(ctx, k); err != nil {
		return Key{}, err
	}
	s.push(ctx, k.ID, func(ctx context.Context) error { return s.cfg.Publisher.Push(ctx, version) })
	return k.open(secret), nil
}

// List returns the live keys of a connection, newest first, with their secrets in clear.
func (s *Service) List(ctx context.Context, c ident.ConnectionID) ([]Key, error) {
	sealed, err := s.cfg.Store.LiveKeys(ctx, c)
	if err != nil {
		return nil, err
	}
	keys := make([]Key, 0, len(sealed))
	for _, k := range sealed {
		var secret []byte
		if k.Sealed != nil {
			if secret, err = s.cfg.Sealer.Open(k.Sealed, binding(k)); err != nil {
				return nil, fmt.Errorf("key %s: %w", k.ID, err)
			}
		}
		keys = append(keys, k.open(string(secret)))
	}
	return keys, nil
}

// Revoke revokes a key; revoking it again changes nothing. A key of another connection is not_found.
func (s *Service) Revoke(ctx context.Context, c ident.ConnectionID, k ident.KeyID) error {
	change, err := s.cfg.Store.RevokeKey(ctx, c, k)
	if err != nil {
		return err
	}
	s.push(ctx, k, func(ctx context.Context) error {
		return s.cfg.Publisher.PushRevocation(ctx, Revocation{c, k}, change)
	})
	return nil
}

// pushTimeout bounds the push before an answer: a Redis that hangs delays issuing and revoking by this much.
const pushTimeout = 400 * time.Millisecond

// push publishes a committed change. It continues when the client goes away, and its failure does not fail
// the operation: the sweep repeats it.
func (s *Service) push(ctx context.Context, k ident.KeyID, push func(context.Context) error) {
	failpoint.Hit(failpoint.KeyCommitted)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pushTimeout)
	defer cancel()
	if err := push(ctx); err != nil {
		s.cfg.Logger.WarnContext(ctx, "key push failed; the sweep repeats it", "api_key_id", string(k),
			"error", err.Error())
	}
}

func (k SealedKey) open(secret string) Key {
	return Key{ID: k.ID, ConnectionID: k.ConnectionID, Scopes: k.Scopes,
		CreatedAt: k.CreatedAt, Secret: secret}
}

// binding is where the secret of a key is stored.
func binding(k SealedKey) seal.Binding {
	return seal.Binding{Table: "api_keys", Column: "sealed_secret", Row: string(k.ID),
		Connection: string(k.ConnectionID)}
}

// parseScopes returns each scope once, in the order of the closed set.
func parseScopes(scopes []string) ([]storekey.Scope, error) {
	if len(scopes) == 0 {
		return storekey.AllScopes(), nil
	}
	asked := make([]storekey.Scope, 0, len(scopes))
	for _, s := range scopes {
		scope, ok := storekey.ParseScope(s)
		if !ok {
			return nil, fault.New(fault.UnknownScope, "A scope is not in the closed set.")
		}
		asked = append(asked, scope)
	}
	return slices.DeleteFunc(storekey.AllScopes(),
		func(s storekey.Scope) bool { return !slices.Contains(asked, s) }), nil
}
