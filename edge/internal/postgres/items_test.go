package postgres

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/edge/internal/itemread"
	"storefront.internal/shared/ident"
)

// aggregate writes an item as control does; an empty body is a deletion.
func aggregate(t *testing.T, owner *pgxpool.Pool, c ident.ConnectionID, item ident.ItemID, revision int64,
	body string, sellable bool, age time.Duration) {
	t.Helper()
	var stored []byte
	if body != "" {
		stored = []byte(body)
	}
	exec(t, owner, `INSERT INTO control.aggregates (connection_id, item_id, refresh_revision, document, body, sellable, refreshed_at)
		VALUES ($1, $2, $3, $4, $4, $5, now() - $6::interval)`, c, item, revision, stored, sellable, age)
}

func TestItems(t *testing.T) {
	t.Parallel()
	owner, edge := open(t)
	items := NewItems(edge)
	aggregate(t, owner, "con_1", "itm_1", 9, "{\"a\":\"é\\u0000\"}\n", true, 0)
	aggregate(t, owner, "con_1", "itm_gone", 4, "", false, 0)
	aggregate(t, owner, "con_2", "itm_1", 3, "{}", true, 0)
	for _, tc := range []struct {
		key      itemread.Key
		held     int64
		revision int64
		body     string
	}{{itemread.Key{Connection: "con_1", Item: "itm_1"}, 0, 9, "{\"a\":\"é\\u0000\"}\n"},
		{itemread.Key{Connection: "con_2", Item: "itm_1"}, 2, 3, "{}"},
		{itemread.Key{Connection: "con_2", Item: "itm_1"}, 3, 3, ""},
		{itemread.Key{Connection: "con_2", Item: "itm_1"}, 4, 3, "{}"},
		{itemread.Key{Connection: "con_1", Item: "itm_gone"}, 0, 4, ""},
		{itemread.Key{Connection: "con_3", Item: "itm_1"}, 0, 0, ""},
		{itemread.Key{Connection: "con_1", Item: "itm_none"}, 0, 0, ""}} {
		v, found, err := items.Item(t.Context(), tc.key, tc.held)
		if err != nil || found != (tc.revision > 0) || v.Revision != tc.revision ||
			string(v.Body) != tc.body {
			t.Errorf("%v: %d %q, %t, %v", tc.key, v.Revision, v.Body, found, err)
		}
	}
	got, err := items.Exist(t.Context(), "con_1", []ident.ItemID{"itm_none", "itm_1", "itm_gone", "itm_1"})
	if err != nil || !slices.Equal(got, []bool{false, true, false, true}) {
		t.Errorf("%v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := items.Item(ctx, itemread.Key{Connection: "con_1", Item: "itm_1"}, 0); !errors.Is(err,
		context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestSellable(t *testing.T) {
	t.Parallel()
	owner, edge := open(t)
	aggregate(t, owner, "con_1", "itm_old", 1, "{}", true, time.Hour)
	aggregate(t, owner, "con_1", "itm_new", 1, "{}", true, time.Minute)
	aggregate(t, owner, "con_1", "itm_hidden", 1, "{}", false, 0)
	aggregate(t, owner, "con_1", "itm_gone", 1, "", false, 0)
	aggregate(t, owner, "con_2", "itm_other", 1, "{}", true, 0)
	for _, tc := range []struct {
		c    ident.ConnectionID
		most int
		want []ident.ItemID
	}{{"con_1", 50, []ident.ItemID{"itm_new", "itm_old"}}, {"con_1", 1, []ident.ItemID{"itm_new"}},
		{"con_3", 50, nil}} {
		if got, err := NewItems(edge).Sellable(t.Context(), tc.c, tc.most); err != nil ||
			!slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, %v", tc.c, got, err)
		}
	}
}

// The edge may read what it serves, but neither documents nor the archive.
func TestCatalogIsReadOnly(t *testing.T) {
	t.Parallel()
	_, edge := open(t)
	for _, sql := range []string{`SELECT document FROM control.aggregates`, `DELETE FROM control.aggregates`,
		`UPDATE control.aggregates SET body = NULL`,
		`SELECT raw FROM control.observations`, `SELECT * FROM control.entities`,
		`SELECT * FROM control.taxonomy_nodes`} {
		var pgErr *pgconn.PgError
		if _, err := edge.Exec(t.Context(), sql); !errors.As(err, &pgErr) || pgErr.Code != "42501" {
			t.Errorf("%s: %v, want insufficient_privilege", sql, err)
		}
	}
}
