package postgres_test

import (
	"strings"
	"testing"

	"storefront.internal/control/internal/observation"
)

func TestHostileElementsAreWholeOrNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	element := func(members string) string {
		return `{"entity":"category","external_id":"h","revision":1,` + members + `}`
	}
	sound := `"document":{"name":{"en":"n"}}`
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	long := strings.Repeat("x", 1<<20)
	f := func(text string, want observation.Status, reason string) {
		t.Helper()
		before := scan[int](s, `SELECT count(*) FROM control.observations`)
		r := s.deliver(text)[0]
		if r.Status != want || r.Reason != reason {
			t.Errorf("%.120s: %s %s, want %s %s", text, r.Status, r.Reason, want, reason)
		}
		added := scan[int](s, `SELECT count(*) FROM control.observations`) - before
		if want == observation.Rejected {
			if added != 0 {
				t.Errorf("%.120s: %d rows", text, added)
			}
			return
		}
		if raw := scan[[]byte](s, `SELECT raw FROM control.observations WHERE observation_id = $1`,
			r.ObservationID); added != 1 || string(raw) != text {
			t.Errorf("%.120s: archived as %.120s", text, raw)
		}
	}
	q := observation.Quarantined
	f(element(`"document":{"name":{"en":"a\u0000b"}}`), q, "nul_character at /document/name/en")
	f(element(`"document":{"name":{"en":"\ud800"}}`), q, "lone_surrogate at /document/name/en")
	f(element(`"document":{"name":{"en":"n"},"x":1e999}`), q, "huge_exponent at /document/x")
	f(element(`"document":{"name":{"en":"n"},"x":`+deep(32)+`}`), q,
		"too_deep at /document/x"+strings.Repeat("/0", 31))
	f(element(`"document":{"name":{"en":"n"},"name":{"en":"m"}}`), q, "duplicate_name at /document/name")
	f(element(sound+`,"raw":"\u0000"`), q, "nul_character at /raw")
	f(element(sound+`,"raw":["\udc00"]`), q, "lone_surrogate at /raw/0")
	f(element(sound+`,"raw":-1E+401`), q, "huge_exponent at /raw")
	f(element(sound+`,"raw":`+deep(33)), q, "too_deep at /raw"+strings.Repeat("/0", 32))
	f(element(sound+`,"raw":{"a":1,"\u0061":2}`), q, "duplicate_name at /raw/a")
	f(element(sound+`,"operation":"delete"`), q, "unexpected_document at /document")
	f(element(`"operation":"merge"`), q, "invalid_operation at /operation")
	f(element(sound+`,"source_updated_at":"2026-01-01"`), q, "invalid_time at /source_updated_at")
	f(element(`"document":{"name":{"en":"`+long+`x"}}`), q, "too_long at /document/name/en")
	f(`{"entity":"category","external_id":"a\u0000","revision":1,`+sound+`}`, observation.Rejected,
		"invalid_external_id")
	f(`{"entity":"category","external_id":"a","revision":1e0,`+sound+`}`, observation.Rejected,
		"invalid_revision")
	f(`{"entity":"category","external_id":"a","revision":9007199254740992,`+sound+`}`, observation.Rejected,
		"invalid_revision")
	f(`{"entity":"shop","external_id":"a","revision":1,`+sound+`}`, observation.Rejected, "invalid_entity")
	f(`"x"`, observation.Rejected, "invalid_observation")
	f(`{"entity":"category","external_id":"big","revision":1,"source_updated_at":"2026-01-01T01:00:00.1234567+01:00","document":{"name":{"en":"`+long+`"}}, "raw" : [ "`+long+`", 1.50e-3 ,null]}`, observation.Accepted, "")
	if n := scan[int](s, `SELECT count(*) FROM control.entities WHERE revision > 0`); n != 1 {
		t.Errorf("%d entities are applied, want the accepted one", n)
	}
	if n := scan[int](s,
		`SELECT count(*) FROM control.observations WHERE source_updated_at = '2026-01-01T00:00:00.123456Z'`); n != 1 {
		t.Error("source_updated_at is not stored to the microsecond in UTC")
	}
}
