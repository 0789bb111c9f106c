package systemtest

import (
	"context"
	"errors"
	"net/http"
	"os/exec"
	"testing"
	"time"

	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
)

// PostgreSQL is restored to an earlier time, while Kafka and Redis go on: under a relay that runs, and before
// a relay that starts. Signals that were accepted, stored and not delivered in between are gone from
// PostgreSQL; the relays read them again by themselves, and each counts once. A key that was revoked in
// between is revoked again.
func TestPostgresIsRestored(t *testing.T) {
	t.Parallel()
	x := newDeploymentWithStores(t)
	edge, relay := x.edge(), x.relay()
	s := x.newStorefront()
	d := s.recommend(edge)
	var ids []string
	send := func(batches int) {
		t.Helper()
		for range batches {
			batch := cartBatch(d, 10)
			s.must(edge, batch)
			ids = append(ids, idsOf(batch)...)
		}
	}
	send(3)
	x.awaitDelivered(t, s, ids, 60*time.Second)
	key := s.issue(x, []*stack.Process{edge}, 1)[0]

	restore := x.backUp(t)
	x.inLostWindow(t, s, func() {
		send(10)
		// Control answers 503 until it has seen that PostgreSQL is back from the backup.
		eventually(t, time.Minute, "control revokes",
			func() error { return x.api.RevokeKey(t.Context(), s.ConnectionID, key.APIKeyID) })
		eventually(t, 30*time.Second, "the revocation",
			func() error { return s.checkKey(edge, key.Secret, http.StatusUnauthorized) })
		x.awaitStored(t, s, len(ids))
	})
	began := time.Now()
	restore()
	send(1)
	x.awaitDelivered(t, s, ids, 90*time.Second)
	t.Logf("under a running relay: healed %s after the restore began",
		time.Since(began).Round(time.Millisecond))
	x.awaitRevoked(t, key)
	check(t, s.checkKey(edge, key.Secret, http.StatusUnauthorized))

	restore = x.backUp(t)
	x.inLostWindow(t, s, func() {
		send(10)
		x.awaitStored(t, s, len(ids))
		x.stop(relay)
	})
	restore()
	x.relay()
	x.awaitDelivered(t, s, ids, 90*time.Second)
	x.awaitDrained(t, s)
}

// inLostWindow runs f while the engine refuses the relay, so that nothing that is stored meanwhile survives
// elsewhere.
func (x *deployment) inLostWindow(t *testing.T, s *storefront, f func()) {
	t.Helper()
	before := len(x.engineView(t, s.ConnectionID).created)
	x.engine.SetToken("engine-secret-2")
	f()
	if now := len(x.engineView(t, s.ConnectionID).created); now != before {
		t.Fatalf("%d signals reached an engine that refuses them", now-before)
	}
	x.engine.SetToken(x.Settings.EngineSecret)
}

func (x *deployment) awaitRevoked(t *testing.T, key client.Key) {
	t.Helper()
	eventually(t, 30*time.Second, "the key in PostgreSQL", func() error {
		if x.number("SELECT count(*)::int FROM control.api_keys WHERE api_key_id = $1 AND revoked_at IS NULL",
			key.APIKeyID) != 0 {
			return errors.New("it lives")
		}
		return nil
	})
}

// backUp copies the data of PostgreSQL and returns the function that brings it back.
func (x *deployment) backUp(t *testing.T) (restore func()) {
	t.Helper()
	var data string
	check(t, x.pool.QueryRow(context.Background(), "SHOW data_directory").Scan(&data))
	backup := data + ".backup"
	whileStopped := func(script string) {
		t.Helper()
		x.stop(x.Postgres)
		run := exec.CommandContext(context.Background(), "sh", "-ec", script, "sh", data, backup)
		if out, err := run.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		check(t, x.Postgres.Start(context.Background()))
		x.pool.Reset()
	}
	whileStopped(`rm -rf "$2"; cp -a "$1" "$2"`)
	return func() { t.Helper(); whileStopped(`rm -rf "$1"; cp -a "$2" "$1"`) }
}
