package collect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// store is a connection of a platform.
type store struct{ connection, provider, external string }

// provider compares what is applied of each platform's store with what the platform has.
func (c *collector) provider(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, c.DatabaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx, `SELECT connection_id, provider, external_store_id FROM control.connections WHERE provider <> 'custom' AND state = 'active'`)
	if err != nil {
		return err
	}
	var all []store
	var s store
	if _, err := pgx.ForEachRow(rows, []any{&s.connection, &s.provider, &s.external}, func() error {
		all = append(all, s)
		return nil
	}); err != nil {
		return err
	}
	for _, s := range all {
		for entity, kind := range map[string]string{"product": "products", "category": "categories"} {
			if err := c.compare(ctx, conn, s, entity, kind); err != nil {
				return fmt.Errorf("%s %s of %s: %w", s.provider, kind, s.external, err)
			}
		}
	}
	return nil
}

// compare makes the truths of one kind of one store.
func (c *collector) compare(ctx context.Context, conn *pgx.Conn, s store, entity, kind string) error {
	have, err := applied(ctx, conn, s.connection, entity)
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
		c.state.Truth = append(c.state.Truth, Truth{Connection: s.connection, Entity: entity, External: id, Have: have[id], Want: canonical(document)})
		delete(have, id)
	}
	for id, digest := range have {
		c.state.Truth = append(c.state.Truth, Truth{Connection: s.connection, Entity: entity, External: id, Have: digest})
	}
	return nil
}

// applied are the digests of the bodies that are applied and not deleted.
func applied(ctx context.Context, conn *pgx.Conn, connection, entity string) (map[string]string, error) {
	rows, err := conn.Query(ctx, `SELECT e.external_id, o.raw FROM control.entities AS e JOIN control.observations AS o USING (observation_id)
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
		have[id] = canonical(document)
		return nil
	})
	return have, err
}

// canonical is the digest of a document, whatever the order and the white space it was written with.
func canonical(document any) string {
	text, err := json.Marshal(document)
	if err != nil {
		return strconv.Quote(err.Error()) // what was read as JSON can be written as JSON
	}
	return digest(text)
}

func get(ctx context.Context, url string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	return json.Unmarshal(text, into)
}
