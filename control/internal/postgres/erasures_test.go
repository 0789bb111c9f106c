package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"storefront.internal/control/internal/postgres"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/testkit"
)

func TestAVisitorsErasureIsWrittenDown(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	control := testkit.Pool(t, testkit.PostgresAs(t, s.url, "storefront_control"))
	service := postgres.NewPrivacy(control)
	if err := service.EraseVisitor(t.Context(), "con_none", "vis_1"); !fault.Is(err, fault.NotFound) {
		t.Errorf("of an unknown connection: %v", err)
	}
	ask := func() time.Time {
		t.Helper()
		if err := service.EraseVisitor(t.Context(), s.source.ConnectionID, "vis_1"); err != nil {
			t.Fatal(err)
		}
		return scan[time.Time](s,
			`SELECT erased_at FROM relay.erasures WHERE subject_id = 'vis_1' AND completed_at IS NULL AND subject = 'visitor'`)
	}
	first := ask()
	digest := pgtype.UUID{Bytes: signal.ErasureDigest(s.source.ConnectionID, signal.VisitorSubject, "vis_1"),
		Valid: true}
	if n := scan[int](s, `SELECT count(*) FROM relay.erasures WHERE digest = $1 AND connection_id = $2`,
		digest, s.source.ConnectionID); n != 1 {
		t.Errorf("%d rows have the digest that a sink knows", n)
	}
	if again := ask(); !again.After(first) {
		t.Errorf("asked again it reaches to %v, first to %v", again, first)
	}
	for _, forbidden := range []string{`DELETE FROM relay.erasures`, `SELECT subject_id FROM relay.erasures`,
		`UPDATE relay.signals SET visitor_id = NULL`,
		`SELECT visitor_id FROM relay.signals`, `SELECT relay.blank_audit('con_a', '{}', now(), now())`} {
		if _, err := control.Exec(t.Context(), forbidden); pg.SQLState(err) != "42501" {
			t.Errorf("%s: %v", forbidden, err)
		}
	}
}
