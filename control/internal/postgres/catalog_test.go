package postgres_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

func TestStatusesAndSnapshots(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, f := range []struct{ entity, five, other, four, six string }{
		{"product", product("x", 5, "five"), product("x", 5, "other"), product("x", 4, "four"),
			product("x", 6, "six")},
		{"category", category("x", 5, "five"), category("x", 5, "other"), category("x", 4, "four"),
			category("x", 6, "six")},
		{"order", order("x", 5, "five"), order("x", 5, "other"), order("x", 4, "four"), order("x", 6, "six")},
	} {
		first := s.one(observation.Accepted, f.five)
		again := s.one(observation.Duplicate, " "+strings.ReplaceAll(f.five, `":`, `" : `))
		if again.ObservationID != first.ObservationID || again.EntityID != first.EntityID ||
			first.EntityID == "" {
			t.Errorf("%+v, again %+v", first, again)
		}
		conflict := s.one(observation.Conflict, f.other)
		stale := s.one(observation.Stale, f.four)
		second := s.one(observation.Accepted, f.six)
		third := s.one(observation.Accepted, deleted(f.entity, "x", 7))
		s.one(observation.Duplicate, deleted(f.entity, "x", 7))
		s.one(observation.Stale, f.six)
		last := s.one(observation.Accepted, strings.Replace(f.six, `"revision":6`,
			`"revision":9007199254740991`, 1))
		for _, r := range []observation.Result{first, second, third, last} {
			got, err := s.service.Snapshot(t.Context(), r.ObservationID)
			if err != nil || string(got.Entity) != f.entity || got.ExternalID != "x" ||
				got.ExternalStoreID != "store" || got.Provider != "custom" ||
				got.ContentDigest != catalog.Digest(got.Document) ||
				(got.Document == nil) != (got.Operation == catalog.Delete) {
				t.Errorf("snapshot %+v, %v", got, err)
			}
		}
		for _, r := range []observation.Result{conflict, stale} {
			if _, err := s.service.Snapshot(t.Context(), r.ObservationID); !fault.Is(err, fault.NotFound) {
				t.Errorf("a snapshot of what is %s: %v", r.Status, err)
			}
			if n := scan[int](s,
				`SELECT count(*) FROM control.observations WHERE observation_id = $1 AND state = $2 AND document IS NULL`, r.ObservationID, r.Status); n != 1 {
				t.Errorf("%s is not in the archive", r.Status)
			}
		}
	}
	if got := scan[int](s, `SELECT count(*) FROM delivery.entries WHERE kind = 2`); got != 12 {
		t.Errorf("%d envelopes, want one for each accepted", got)
	}
	for _, id := range []ident.ObservationID{"obs_x", ident.ObservationID(ident.Random(ident.Observation))} {
		if _, err := s.service.Snapshot(t.Context(), id); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestEnvelopesAreCloudEvents(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	external := "a\"<b>é\u2028"
	quoted, err := json.Marshal(external)
	if err != nil {
		t.Fatal(err)
	}
	r := s.one(observation.Accepted, strings.Replace(order("x", 3, "open"), `"x"`, string(quoted), 1))
	body := scan[[]byte](s, `SELECT body FROM delivery.entries WHERE kind = 2`)
	var e struct {
		SpecVersion, ID, Source, Type, Subject, Time, DataContentType string
		Data                                                          map[string]any
	}
	if err := json.Unmarshal(body, &e); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if e.SpecVersion != "1.0" || e.ID != string(r.ObservationID) ||
		e.Source != "/connections/"+string(s.source.ConnectionID) ||
		e.Type != "storefront.entity.observed.v1" || e.Subject != r.EntityID || e.Time == "" ||
		e.DataContentType != "application/json" {
		t.Errorf("event %s", body)
	}
	snapshot, err := s.service.Snapshot(t.Context(), r.ObservationID)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"observation_id": string(r.ObservationID), "connection_id": string(s.source.ConnectionID),
		"store_id": string(s.source.StoreID), "provider": "custom",
		"entity": "order", "external_id": external, "revision": 3.0, "operation": "upsert",
		"content_digest": snapshot.ContentDigest, "snapshot": "canonical",
	}
	if fmt.Sprint(e.Data) != fmt.Sprint(want) || bytes.Contains(body, []byte("canary")) {
		t.Errorf("data %v\nwant %v", e.Data, want)
	}
}

func TestABatchFoldsInTheOrderOfTheArray(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	results := s.deliver(product("p", 2, "two"), product("p", 1, "one"), product("p", 2, "two"),
		product("p", 2, "other"),
		deleted("product", "p", 3), product("p", 4, "four"), `7`, `{"entity":"product","external_id":"p"}`,
		product("p", 0, "zero"),
		strings.Replace(product("p", 5, "five"), "10.50", "x", 1), product("p", 5,
			"five"), deleted("category", "never", 1))
	var got []string
	for _, r := range results {
		got = append(got, string(r.Status)+" "+r.Reason)
		if (r.EntityID == "") != (r.Index == 6) ||
			(r.ObservationID == "") != (r.Status == observation.Rejected) {
			t.Errorf("%+v", r)
		}
	}
	want := "accepted |stale |duplicate |conflict |accepted |accepted |rejected " +
		"invalid_observation|rejected missing_revision|rejected invalid_revision|" +
		"quarantined invalid_amount at /document/variants/0/price/amount|accepted |accepted "
	if strings.Join(got, "|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}
	if results[2].ObservationID != results[0].ObservationID {
		t.Error("a duplicate within the batch has another id")
	}
	v := s.served("p")
	if title, _, revision := titleOf(t, v.Body); v.Revision != 4 || revision != 4 ||
		title != "five" || !v.Sellable {
		t.Errorf("served %d %s", v.Revision, v.Body)
	}
	envelopes := scan[string](s,
		`SELECT string_agg(convert_from(body, 'UTF8')::json -> 'data' ->> 'revision', ' ' ORDER BY seq) FROM delivery.entries WHERE kind = 2 AND convert_from(body, 'UTF8')::json -> 'data' ->> 'entity' = 'product'`)
	if envelopes != "2 3 4 5" {
		t.Errorf("envelopes of revisions %s", envelopes)
	}
}

func TestRefreshRevisionNeverFalls(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := func(element string, revision int64, there, sellable bool) {
		t.Helper()
		s.one(observation.Accepted, element)
		if v := s.served("p"); v.Revision != revision || (v.Body != nil) != there || v.Sellable != sellable {
			t.Errorf("%.80s: revision %d, sellable %t, %.80s", element, v.Revision, v.Sellable, v.Body)
		}
	}
	f(deleted("product", "p", 1), 1, false, false)
	f(product("p", 2, "a", "c"), 2, true, true)
	f(strings.Replace(product("p", 3, "b"), `"active"`, `"hidden"`, 1), 3, true, false)
	f(deleted("product", "p", 10), 4, false, false)
	f(product("p", 11, "a"), 5, true, true)
	if n := scan[int](s, `SELECT count(*) FROM control.item_taxonomy`); n != 0 {
		t.Errorf("%d links are left", n)
	}
}

func TestQuarantineAndReplay(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	c := s.source.ConnectionID
	bad := strings.Replace(order("o", 5, "open"), `"EUR","total"`, `"euro","total"`, 1)
	found := s.one(observation.Quarantined, bad)
	if found.Reason != "invalid_currency at /document/currency" || found.EntityID == "" {
		t.Errorf("%+v", found)
	}
	if raw := scan[[]byte](s, `SELECT raw FROM control.observations WHERE observation_id = $1`,
		found.ObservationID); string(raw) != bad {
		t.Errorf("archived %s", raw)
	}
	page, err := s.service.Quarantine(t.Context(), c, "")
	if err != nil || len(page.Observations) != 1 ||
		page.Observations[0].ObservationID != found.ObservationID ||
		page.Observations[0].Reason != found.Reason ||
		page.Observations[0].ExternalID != "o" || page.Observations[0].Revision != 5 ||
		page.Observations[0].At.IsZero() || page.Cursor != "" {
		t.Errorf("page %+v, %v", page, err)
	}
	if _, err := s.service.Quarantine(t.Context(), "con_none", ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("no connection: %v", err)
	}
	if _, err := s.service.Quarantine(t.Context(), c, "x"); !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("bad cursor: %v", err)
	}
	still, err := s.service.Replay(t.Context(), c, found.ObservationID)
	if err != nil || still.Status != observation.Quarantined || still.ObservationID != found.ObservationID ||
		still.Reason != found.Reason {
		t.Errorf("replayed %+v, %v", still, err)
	}
	other := s.connect("other")
	for _, f := range []struct {
		c  ident.ConnectionID
		id ident.ObservationID
	}{{other.ConnectionID, found.ObservationID}, {c, "obs_none"}, {"con_none", found.ObservationID}} {
		if _, err := s.service.Replay(t.Context(), f.c, f.id); !fault.Is(err, fault.NotFound) {
			t.Errorf("%v: %v", f, err)
		}
	}
	s.one(observation.Accepted, order("o", 5, "open")) // the revision was not used up
	if _, err := s.service.Replay(t.Context(), c, found.ObservationID); !fault.Is(err, fault.NotFound) {
		t.Errorf("after the entity was accepted: %v", err)
	}
}

// mend replaces bytes of the archive, which no service may: it switches the triggers off for a moment.
func (s *shop) mend(id ident.ObservationID, sound string) {
	s.t.Helper()
	err := pgx.BeginFunc(s.t.Context(), s.super, func(tx pgx.Tx) error {
		if _, err := tx.Exec(s.t.Context(), `SET LOCAL session_replication_role = replica`); err != nil {
			return err
		}
		_, err := tx.Exec(s.t.Context(), `UPDATE control.observations SET raw = $2 WHERE observation_id = $1`,
			id, []byte(sound))
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestReplayAfterAFixOfTheRules makes archived elements valid, as a release with other rules would.
func TestReplayAfterAFixOfTheRules(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	c := s.source.ConnectionID
	f := func(external string, applied, sound string, want observation.Status, state string) {
		t.Helper()
		if applied != "" {
			s.one(observation.Accepted, applied)
		}
		id := s.one(observation.Quarantined, fmt.Sprintf(`{"entity":"product","external_id":%q,"revision":5}`,
			external)).ObservationID
		s.mend(id, sound)
		before := scan[int](s, `SELECT count(*) FROM control.observations`)
		r, err := s.service.Replay(t.Context(), c, id)
		if err != nil || r.Status != want {
			t.Fatalf("%s: %+v, %v", external, r, err)
		}
		added := scan[int](s, `SELECT count(*) FROM control.observations`) - before
		if got := scan[string](s, `SELECT state FROM control.observations WHERE observation_id = $1`,
			id); got != state || (added == 1) != (want == observation.Accepted) {
			t.Errorf("%s: state %s, %d rows added", external, got, added)
		}
		if _, err := s.service.Snapshot(t.Context(),
			r.ObservationID); (err == nil) != (want == observation.Accepted ||
			want == observation.Duplicate) {
			t.Errorf("%s: snapshot %v", external, err)
		}
		if _, err := s.service.Replay(t.Context(), c, id); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: replayed again: %v", external, err)
		}
	}
	f("new", "", product("new", 5, "five"), observation.Accepted, observation.StateReplayed)
	f("older", product("older", 4, "four"), product("older", 5, "five"), observation.Accepted,
		observation.StateReplayed)
	f("same", product("same", 5, "five"), product("same", 5, "five"), observation.Duplicate,
		observation.StateSuperseded)
	f("stale", product("stale", 6, "six"), product("stale", 5, "five"), observation.Stale,
		observation.StateSuperseded)
	f("conflict", product("conflict", 5, "other"), product("conflict", 5, "five"), observation.Conflict,
		observation.StateSuperseded)
	if title, _, _ := titleOf(t, s.served("new").Body); title != "five" {
		t.Error("a replayed product is not served")
	}
	if page, err := s.service.Quarantine(t.Context(), c, ""); err != nil || len(page.Observations) != 0 {
		t.Errorf("left: %+v, %v", page, err)
	}
}

func TestQuarantinePages(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	want := map[ident.ObservationID]bool{}
	for i := range 3 {
		var elements []string
		for n := range 75 {
			elements = append(elements,
				fmt.Sprintf(`{"entity":"category","external_id":"%d-%d","revision":1}`, i, n))
		}
		for _, r := range s.deliver(elements...) {
			want[r.ObservationID] = true
		}
	}
	last := ident.ObservationID("obs_~")
	pages := 0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		page, err := s.service.Quarantine(t.Context(), s.source.ConnectionID, cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range page.Observations {
			if h.ObservationID >= last || !want[h.ObservationID] {
				t.Errorf("%s after %s", h.ObservationID, last)
			}
			last = h.ObservationID
			delete(want, h.ObservationID)
		}
		cursor = page.Cursor
	}
	if pages != 3 || len(want) != 0 {
		t.Errorf("%d pages, %d missing", pages, len(want))
	}
}
