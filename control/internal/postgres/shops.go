package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/control/internal/bootstrap"
	"storefront.internal/control/internal/connection"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

// Shops is the part of schema control that holds the state and credential of shops.
type Shops struct {
	pool *pgxpool.Pool
	jobs Jobs
}

// NewShops returns Shops.
func NewShops(pool *pgxpool.Pool, jobs Jobs) *Shops { return &Shops{pool: pool, jobs: jobs} }

const selectShop = `
SELECT c.connection_id, c.store_id, c.provider, c.external_store_id, c.state, c.disabled_at IS NOT NULL,
    c.store_profile, k.sealed, k.updated_at
FROM control.connections c
LEFT JOIN control.credentials k ON k.connection_id = c.connection_id
WHERE c.connection_id = $1 AND c.provider <> $2`

// Shop implements shop.Store.
func (s *Shops) Shop(ctx context.Context, c ident.ConnectionID) (r shop.Record, err error) {
	var profile []byte
	var at *time.Time
	err = s.pool.QueryRow(ctx, selectShop, c, connection.ProviderCustom).Scan(&r.Source.ConnectionID,
		&r.Source.StoreID,
		&r.Source.Provider, &r.ExternalStoreID, &r.State, &r.Disabled, &profile,
		&r.Sealed, &at)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, notFound("connection")
	}
	if at != nil {
		r.CredentialAt = *at
	}
	if err == nil && profile != nil {
		r.Profile, err = profileOf(profile)
	}
	return r, Translate("read shop", err)
}

func profileOf(text []byte) (provider.Profile, error) {
	var p connection.Profile
	if err := json.Unmarshal(text, &p); err != nil {
		return provider.Profile{}, fmt.Errorf("store profile: %T", err)
	}
	return provider.Profile{
		Name: deref(p.Name), Domain: deref(p.Domain), Country: deref(p.Country), Language: deref(p.Language),
		Currency: deref(p.Currency),
	}, nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// A connection that was installed again while its end was being confirmed keeps its new credential: the
// statements compare the time of the credential that the confirmation used.
const (
	lockConnection = `SELECT state FROM control.connections WHERE connection_id = $1 FOR NO KEY UPDATE`
	setShopState   = `UPDATE control.connections SET state = $2 WHERE connection_id = $1`
	sameCredential = `SELECT EXISTS (SELECT FROM control.credentials 
	    WHERE connection_id = $1 AND updated_at = $2)`
	dropCredential = `DELETE FROM control.credentials WHERE connection_id = $1`
	endRefusal     = `
UPDATE control.credentials SET refused_at = NULL WHERE connection_id = $1 AND refused_at IS NOT NULL`
)

// A refusal is over when the credential is replaced or the shop was read.
const (
	selectRefusal = `
SELECT k.refused_at
FROM control.credentials k
LEFT JOIN control.installations i ON i.connection_id = k.connection_id
WHERE k.connection_id = $1 AND k.refused_at > greatest(k.updated_at, i.caught_up_at)`

	recordRefusal = `
UPDATE control.credentials
SET refused_at = now()
WHERE connection_id = $1 AND updated_at = $2 AND NOT EXISTS (` + selectRefusal + `)`
)

// RecordRefusal implements shop.States. A refusal keeps the time of its first one.
func (s *Shops) RecordRefusal(ctx context.Context, c ident.ConnectionID, credentialAt time.Time) error {
	_, err := s.pool.Exec(ctx, recordRefusal, c, credentialAt)
	return Translate("note refusal", err)
}

// SetState implements shop.States. A shop that becomes active again gets a bootstrap run, since its webhooks
// were missed.
func (s *Shops) SetState(ctx context.Context, c ident.ConnectionID, credentialAt time.Time,
	to shop.State) error {
	err := pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		var before shop.State
		var same bool
		if err := tx.QueryRow(ctx, lockConnection, c).Scan(&before); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, sameCredential, c, credentialAt).Scan(&same); err != nil || !same {
			return err
		}
		if to == shop.Active {
			if _, err := tx.Exec(ctx, endRefusal, c); err != nil {
				return err
			}
		}
		if before == to {
			return nil
		}
		if _, err := tx.Exec(ctx, setShopState, c, to); err != nil {
			return err
		}
		var err error
		switch to {
		case shop.Uninstalled:
			_, err = tx.Exec(ctx, dropCredential, c)
		case shop.Active:
			_, err = openRun(ctx, tx, s.jobs, bootstrap.NewRun(c, nil, time.Now()))
		case shop.Suspended:
		}
		return err
	})
	return Translate("set state of a shop", err)
}
