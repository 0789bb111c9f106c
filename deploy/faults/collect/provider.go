package collect

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/jackc/pgx/v5"

	"storefront.internal/deploy/stack/client"
)

// platformShop is the shop of a connection at a platform.
type platformShop struct{ connection, provider, external string }

// provider compares the applied entities of each platform's shop with those of the platform.
func (c *collector) provider(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, c.DatabaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx,
		`SELECT connection_id, provider, external_store_id FROM control.connections
		WHERE provider <> 'custom' AND state = 'active'`)
	if err != nil {
		return err
	}
	var all []platformShop
	var s platformShop
	if _, err := pgx.ForEachRow(rows, []any{&s.connection, &s.provider, &s.external}, func() error {
		all = append(all, s)
		return nil
	}); err != nil {
		return err
	}
	for _, s := range all {
		for entity, kind := range map[string]string{"product": "products", "category": "categories"} {
			if err := c.compareEntities(ctx, conn, s, entity, kind); err != nil {
				return fmt.Errorf("%s %s of %s: %w", s.provider, kind, s.external, err)
			}
		}
	}
	return nil
}

// compareEntities compares one kind of entity of one shop.
func (c *collector) compareEntities(ctx context.Context, conn *pgx.Conn, s platformShop, entity,
	kind string) error {
	have, err := appliedDigests(ctx, conn, s.connection, entity)
	if err != nil {
		return err
	}
	query := "?" + url.Values{"provider": {s.provider}, "store": {s.external}}.Encode()
	var there struct {
		IDs []json.Number `json:"ids"`
	}
	if err := get(ctx, c.ProviderURL+"/debug/"+kind+query, &there); err != nil {
		return err
	}
	for _, n := range there.IDs {
		id := n.String()
		var document any
		if err := get(ctx, c.ProviderURL+"/debug/"+kind+"/"+id+query, &document); err != nil {
			return err
		}
		c.state.ProviderEntities = append(c.state.ProviderEntities,
			ProviderEntity{Connection: s.connection, Entity: entity, External: id, Applied: have[id],
				Provider: canonicalDigest(document)})
		delete(have, id)
	}
	for id, digest := range have {
		c.state.ProviderEntities = append(c.state.ProviderEntities,
			ProviderEntity{Connection: s.connection, Entity: entity, External: id, Applied: digest})
	}
	return nil
}

// appliedDigests returns the digests of the applied bodies that are not deleted.
func appliedDigests(ctx context.Context, conn *pgx.Conn, connection, entity string) (map[string]string,
	error) {
	rows, err := conn.Query(ctx, `SELECT e.external_id, o.raw
		FROM control.entities AS e JOIN control.observations AS o USING (observation_id)
		WHERE e.connection_id = $1 AND e.entity = $2 AND e.operation = 'upsert'`, connection, entity)
	if err != nil {
		return nil, err
	}
	have := map[string]string{}
	var id string
	var raw []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &raw}, func() error {
		var document any
		if err := json.Unmarshal(raw, &document); err != nil {
			return err
		}
		have[id] = canonicalDigest(document)
		return nil
	})
	return have, err
}

// canonicalDigest returns a digest that does not depend on the order of members and on white space.
func canonicalDigest(document any) string {
	text, err := json.Marshal(document)
	if err != nil {
		return strconv.Quote(err.Error()) // a decoded document can be encoded
	}
	return digest(text)
}

func get(ctx context.Context, url string, into any) error {
	return client.Call(ctx, nil, client.Request{Method: http.MethodGet, URL: url}, into)
}
