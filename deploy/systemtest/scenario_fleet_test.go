package systemtest

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	crand "crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/deploy/fakeprovider/fake"
	"storefront.internal/deploy/stack/client"
)

// All shops of a fleet are due for a catch-up at once, every tenth for a reload instead, as after a day
// without control. All are done and no job fails. Meanwhile open_installation (operation 5)
// and open_bootstrap (operation 8) are answered, also about shops that are due, and new shops begin their
// first load within ten seconds. `make soak` has 10,000 shops.
func TestFleet(t *testing.T) {
	t.Parallel()
	f := newFleet(t, soak(60, 10_000))
	before := f.rollbacks()
	begun := f.seed()
	watch, stop := context.WithCancel(t.Context())
	defer stop()
	var meanwhile sync.WaitGroup
	for _, work := range []func(context.Context){
		f.reinstall, f.openBootstraps, f.addShops, f.watchTransactions,
	} {
		meanwhile.Go(func() { work(watch) })
	}
	eventually(t, time.Duration(soak(1, 40))*time.Minute, "all shops are done", func() error {
		if n := f.left(begun); n > 0 {
			return fmt.Errorf("%d of %d shops are left", n, len(f.shops))
		}
		return nil
	})
	took := time.Since(begun)
	f.rolledBack = f.rollbacks() - before
	stop()
	meanwhile.Wait()
	f.report(took)
}

// fleet is a deployment with many small shops.
type fleet struct {
	*deployment
	shops   []string // connections
	added   atomic.Int64
	longest time.Duration // transaction of control
	culprit string        // its last statement

	opened, loaded latencies // of operations 5 and 8
	starts         latencies // of new shops: from the answer of operation 5 to the first load's first step
	rolledBack     int       // transactions, also those that found an unfinished run
	failures       []error
	mu             sync.Mutex
}

// The external id of the first shop, and the access token of all.
const (
	firstStore = 5_000_000
	fleetToken = "demo-" + canary + "fleet"
)

type latencies struct {
	mu  sync.Mutex
	all []time.Duration
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, d)
}

func (l *latencies) String() string {
	return fmt.Sprintf("%d, p50 %s, p99 %s, max %s", len(l.all),
		percentile(l.all, 50).Round(time.Millisecond), percentile(l.all, 99).Round(time.Millisecond),
		percentile(l.all, 100).Round(time.Millisecond))
}

func newFleet(t *testing.T, shops int) *fleet {
	t.Helper()
	p := newPlatform(t, fake.Config{Products: 2, Orders: 1, Unthrottled: true})
	x := newDatabase(t)
	p.configure(&x.Settings)
	skipBacklog(t, x)
	x.startControl("CONTROL_CATCH_UP_EVERY=24h", "CONTROL_RELOAD_EVERY=720h", "CONTROL_LOG_LEVEL=WARN")
	return &fleet{deployment: x, shops: make([]string, shops)}
}

// open installs a shop, or installs it again.
func (f *fleet) open(ctx context.Context, i int) (client.Installed, error) {
	return f.api.OpenInstallation(ctx, client.Installation{
		Provider: providers()[0].name, AppID: platformApp, ExternalStoreID: strconv.Itoa(firstStore + i),
		AccessToken: fleetToken,
		Profile:     map[string]string{"language": "es", "currency": "ARS"},
	})
}

// seed stores installed shops that are all due. Their last run is a minute old, of every tenth a month.
func (f *fleet) seed() time.Time {
	f.t.Helper()
	sealed := f.sealer()
	var connections []string
	var sealedTokens [][]byte
	for i := range f.shops {
		f.shops[i] = fmt.Sprintf("con_fleet%06d", i)
		connections, sealedTokens = append(connections, f.shops[i]), append(sealedTokens, sealed(f.shops[i]))
	}
	for _, sql := range []string{
		`INSERT INTO control.connections (connection_id, store_id, provider, external_store_id)
			SELECT c, 'str_' || c, $4, ($5 + n - 1)::text FROM fleet`,
		`INSERT INTO control.credentials (connection_id, sealed) SELECT c, token FROM fleet`,
		`INSERT INTO control.bootstrap_runs (bootstrap_run_id, command_id, connection_id, state, resources,
				created_at, updated_at)
			SELECT 'bsr_' || c, 'cmd_' || c, c, 'completed', '{}', at, at
			FROM fleet, LATERAL (SELECT now() - CASE WHEN n % 10 = 0 THEN interval '31 days'
				ELSE interval '1 minute' END AS at) AS a`,
		`INSERT INTO control.installations (installation_id, connection_id, provider, provider_app_id, state,
				opened_at, caught_up_at, catch_up_at, swept_at)
			SELECT 'ins_' || c, c, $4, $3, 'completed', day, day, day, now() + interval '1 day'
			FROM fleet, LATERAL (SELECT now() - interval '1 day' AS day) AS d`,
	} {
		_, err := f.pool.Exec(f.t.Context(), `WITH fleet AS (
			SELECT c, token, n FROM unnest($1::text[], $2::bytea[]) WITH ORDINALITY AS f (c, token, n)
			WHERE $3::text IS NOT NULL AND $4::text IS NOT NULL AND $5::int > 0) `+sql,
			connections, sealedTokens, platformApp, providers()[0].name, firstStore)
		check(f.t, err)
	}
	return time.Now()
}

// sealer seals a credential as control does: AES-256-GCM in Tink's form, bound to its row.
func (f *fleet) sealer() func(connection string) []byte {
	f.t.Helper()
	text, err := os.ReadFile(f.Settings.KeysetFile)
	check(f.t, err)
	var keyset struct {
		Key []struct {
			KeyID   uint32 `json:"keyId"`
			KeyData struct {
				Value []byte `json:"value"`
			} `json:"keyData"`
		} `json:"key"`
	}
	check(f.t, json.Unmarshal(text, &keyset))
	key := keyset.Key[0]
	raw := key.KeyData.Value
	block, err := aes.NewCipher(raw[len(raw)-32:]) // a protobuf whose last field is the key
	check(f.t, err)
	gcm, err := cipher.NewGCM(block)
	check(f.t, err)
	header := binary.BigEndian.AppendUint32([]byte{1}, key.KeyID)
	return func(connection string) []byte {
		nonce := make([]byte, gcm.NonceSize())
		_, _ = crand.Read(nonce) // never fails
		bound := []byte("v1|credentials|sealed|" + connection + "|" + connection)
		return gcm.Seal(slices.Concat(header, nonce), nonce, []byte(fleetToken), bound)
	}
}

// left is how many shops were neither caught up with nor reloaded since.
func (f *fleet) left(since time.Time) int {
	f.t.Helper()
	return f.number(`SELECT count(*) FROM control.installations i
		WHERE i.opened_at < $1 AND i.caught_up_at < $1 AND NOT EXISTS (
			SELECT FROM control.bootstrap_runs b
			WHERE b.connection_id = i.connection_id AND b.state = 'completed' AND b.updated_at >= $1)`, since)
}

// rollbacks is the number of transactions of the database that were rolled back.
func (f *fleet) rollbacks() int {
	f.t.Helper()
	return f.number(`SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()`)
}

// every calls do until the context ends.
func (f *fleet) every(ctx context.Context, interval time.Duration, do func() error) {
	for tick := time.NewTicker(interval); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		if err := do(); err != nil && ctx.Err() == nil {
			f.mu.Lock()
			f.failures = append(f.failures, err)
			f.mu.Unlock()
		}
	}
}

// reinstall installs shops of the fleet again: at most one of a hundred, so that the catch-ups are the load.
func (f *fleet) reinstall(ctx context.Context) {
	f.every(ctx, time.Second, func() error {
		i := rand.IntN(max(len(f.shops)/100, 1))
		begun := time.Now()
		_, err := f.open(ctx, i)
		if err == nil {
			f.opened.add(time.Since(begun))
		}
		return err
	})
}

// openBootstraps asks for loads of shops of the fleet, fewer than can be done: they go before the reloads.
// One that runs already is an answer too.
func (f *fleet) openBootstraps(ctx context.Context) {
	f.every(ctx, time.Second, func() error {
		begun := time.Now()
		_, err := f.api.OpenBootstrap(ctx, f.shops[rand.IntN(len(f.shops))])
		if status := (&client.StatusError{}); errors.As(err, &status) && status.Status == 409 {
			err = nil
		}
		if err == nil {
			f.loaded.add(time.Since(begun))
		}
		return err
	})
}

// addShops installs new shops and measures when their first loads begin.
func (f *fleet) addShops(ctx context.Context) {
	f.every(ctx, time.Second, func() error {
		got, err := f.open(ctx, len(f.shops)+int(f.added.Add(1)))
		if err != nil {
			return err
		}
		begun := time.Now()
		for started := false; !started; {
			err := f.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM control.bootstrap_runs
				WHERE connection_id = $1 AND state <> 'queued')`, got.ConnectionID).Scan(&started)
			if err != nil {
				return err
			}
			time.Sleep(10 * time.Millisecond)
		}
		f.starts.add(time.Since(begun))
		return nil
	})
}

// watchTransactions looks for the longest transaction of control that writes, and so holds up others.
func (f *fleet) watchTransactions(ctx context.Context) {
	f.every(ctx, 10*time.Millisecond, func() error {
		var longest time.Duration
		var query string
		err := f.pool.QueryRow(ctx, `SELECT clock_timestamp() - xact_start, left(query, 80) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'storefront-control' AND backend_xid IS NOT NULL
			ORDER BY xact_start LIMIT 1`).Scan(&longest, &query)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if longest > f.longest {
			f.longest, f.culprit = longest, query
		}
		return err
	})
}

func (f *fleet) report(took time.Duration) {
	f.t.Helper()
	for _, err := range f.failures {
		f.t.Error(err)
	}
	failed := f.number(`SELECT count(*) FROM control.river_job WHERE cardinality(errors) > 0`)
	doubled := f.number(`SELECT count(*) FROM (SELECT FROM control.river_job
		WHERE kind = 'catch_up' GROUP BY args HAVING count(*) > 1) AS d`)
	f.t.Logf("%d shops were done after %s: %d catch-ups, %d loads, %d jobs that failed, %d shops with two "+
		"catch-ups, %d transactions rolled back; longest transaction that writes %s (%q)",
		len(f.shops), took.Round(time.Second),
		f.number(`SELECT count(*) FROM control.river_job WHERE kind = 'catch_up'`),
		f.number(`SELECT count(*) FROM control.river_job WHERE kind = 'bootstrap_load'`), failed, doubled,
		f.rolledBack, f.longest.Round(time.Millisecond), f.culprit)
	f.t.Logf("open_installation: %v", &f.opened)
	f.t.Logf("open_bootstrap: %v", &f.loaded)
	f.t.Logf("new shops, until their first load began: %v", &f.starts)
	checkFigure(f.t, "no job failed", failed == 0)
	nextDay := float64(len(f.shops)) * took.Hours() / 24 // whose place in the next interval has come
	checkFigure(f.t, "a shop has one catch-up", float64(doubled) <= 2*nextDay+1)
	if soaking() {
		checkFigure(f.t, "first loads begin within 10 s", percentile(f.starts.all, 100) <= 10*time.Second)
		checkFigure(f.t, "p99 of open_installation is at most 1 s",
			percentile(f.opened.all, 99) <= time.Second)
		checkFigure(f.t, "p99 of open_bootstrap is at most 1 s", percentile(f.loaded.all, 99) <= time.Second)
		checkFigure(f.t, "no transaction takes 2 s", f.longest < 2*time.Second)
	}
}
