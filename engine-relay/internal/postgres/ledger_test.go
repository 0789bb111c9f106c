package postgres_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// insertLedgerBefore is the statement of the release before relay.ledger_digests, word for word.
const insertLedgerBefore = `
INSERT INTO relay.ledger (connection_id, digest)
SELECT connection_id, digest
FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS k (connection_id, digest, n)
ORDER BY n
ON CONFLICT DO NOTHING
RETURNING digest`

// ledgerWriter inserts keys in a transaction, calls then, and commits if then returns nil. It returns the
// digests that were new.
type ledgerWriter func(ctx context.Context, keys []sink.LedgerKey, then func() error) (digests, error)

type digests map[[16]byte]struct{}

func (b *bundle) thisRelease(ctx context.Context, keys []sink.LedgerKey, then func() error) (digests, error) {
	var inserted digests
	err := b.store.InTx(ctx, func(tx sink.Tx) (err error) {
		if inserted, err = tx.InsertLedger(ctx, keys); err != nil {
			return err
		}
		return then()
	})
	return inserted, err
}

func (b *bundle) releaseBefore(ctx context.Context, keys []sink.LedgerKey,
	then func() error) (digests, error) {
	connections, all := make([]string, len(keys)), make([][16]byte, len(keys))
	for i, k := range keys {
		connections[i], all[i] = string(k.ConnectionID), k.Digest
	}
	inserted := digests{}
	err := pgx.BeginFunc(ctx, b.relay, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, insertLedgerBefore, connections, all)
		if err != nil {
			return err
		}
		var d [16]byte
		if _, err := pgx.ForEachRow(rows, []any{&d}, func() error {
			inserted[d] = struct{}{}
			return nil
		}); err != nil {
			return err
		}
		return then()
	})
	return inserted, err
}

// storeBefore stores keys as they were stored before the migration that made relay.ledger_digests.
func (b *bundle) storeBefore(t *testing.T, keys ...sink.LedgerKey) {
	t.Helper()
	b.exec(t, `ALTER TABLE relay.ledger DISABLE TRIGGER insert_digest`)
	if inserted, err := b.releaseBefore(t.Context(), keys, commit); err != nil || len(inserted) != len(keys) {
		t.Fatalf("%d of %d, %v", len(inserted), len(keys), err)
	}
	b.exec(t, `ALTER TABLE relay.ledger ENABLE TRIGGER insert_digest`)
}

func ledgerKey(connection, id int) sink.LedgerKey {
	c := ident.ConnectionID(fmt.Sprintf("con_%d", connection))
	return sink.LedgerKey{ConnectionID: c,
		Digest: signal.LedgerDigest(c, ident.SignalID(fmt.Sprintf("sig_%d", id)))}
}

func compareKeys(a, b sink.LedgerKey) int {
	return cmp.Or(strings.Compare(string(a.ConnectionID), string(b.ConnectionID)),
		bytes.Compare(a.Digest[:], b.Digest[:]))
}

var errRolledBack = errors.New("rolled back by the test")

func commit() error   { return nil }
func rollback() error { return errRolledBack }

// TestASignalIsNewToOneRelease inserts one key by relays of two releases in each order, when the first one
// commits before the second begins, commits while the second waits, and rolls back while the second waits.
func TestASignalIsNewToOneRelease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	releases := map[string]ledgerWriter{"this": b.thisRelease, "before": b.releaseBefore}
	id := 0
	for firstName, first := range releases {
		for secondName, second := range releases {
			t.Run(firstName+", then "+secondName, func(t *testing.T) {
				id++
				expect(t, "first", b.insertOne(t, first, id), 1)
				expect(t, "second, after the commit", b.insertOne(t, second, id), 0)
				id++
				expect(t, "second, while the first commits", b.waiter(t, first, second, id, commit), 0)
				expect(t, "again after both", b.insertOne(t, second, id), 0)
				id++
				expect(t, "second, while the first rolls back", b.waiter(t, first, second, id, rollback), 1)
				expect(t, "again after both", b.insertOne(t, first, id), 0)
			})
		}
	}
}

func (b *bundle) insertOne(t *testing.T, by ledgerWriter, id int) int {
	t.Helper()
	inserted, err := by(t.Context(), []sink.LedgerKey{ledgerKey(1, id)}, commit)
	if err != nil {
		t.Fatal(err)
	}
	return len(inserted)
}

// waiter begins a transaction of first, then one of second with the same key, ends the first one when the
// second waits for it, and returns how many keys were new to the second.
func (b *bundle) waiter(t *testing.T, first, second ledgerWriter, id int, end func() error) int {
	t.Helper()
	var found digests
	done := make(chan error, 1)
	key := []sink.LedgerKey{ledgerKey(1, id)}
	inserted, err := first(t.Context(), key, func() error {
		go func() {
			var err error
			found, err = second(t.Context(), key, commit)
			done <- err
		}()
		for b.count(t, `pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0 {
			select {
			case err := <-done:
				t.Fatalf("the second transaction did not wait: %d, %v", len(found), err)
			case <-time.After(time.Millisecond):
			}
		}
		return end()
	})
	if err != nil && !errors.Is(err, errRolledBack) || len(inserted) != 1 {
		t.Fatalf("first: %d, %v", len(inserted), err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// TestRelaysOfTwoReleases lets relays of two releases insert overlapping keys side by side; some keys were
// stored before the migration, and some transactions roll back. Over all transactions that commit, a key is
// new exactly once, or never if it was stored before. None fails, as one in a deadlock would.
func TestRelaysOfTwoReleases(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const connections, rounds, perRound, window = 3, 150, 4, 60
	var all, stored []sink.LedgerKey
	for id := range rounds*perRound + window {
		for c := range connections {
			key := ledgerKey(c, id) // the same signal ids in each connection
			all = append(all, key)
			if id%4 == 0 {
				stored = append(stored, key)
			}
		}
	}
	slices.SortFunc(stored, compareKeys)
	b.storeBefore(t, stored...)
	var mu sync.Mutex
	found := map[[16]byte]int{}
	for _, k := range stored {
		found[k.Digest]++
	}
	attempt := func(by ledgerWriter, round int) {
		keys := slices.Clone(all[round*perRound*connections : (round*perRound+window)*connections])
		rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		keys = keys[:1+rand.IntN(len(keys))]
		slices.SortFunc(keys, compareKeys)
		end := commit
		if rand.IntN(3) == 0 {
			end = rollback
		}
		inserted, err := by(t.Context(), keys, end)
		if errors.Is(err, errRolledBack) {
			return
		}
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for d := range inserted {
			found[d]++
		}
	}
	var wg sync.WaitGroup
	for worker := range 4 {
		by := ledgerWriter(b.thisRelease)
		if worker%2 == 0 {
			by = b.releaseBefore
		}
		wg.Go(func() {
			for round := range rounds {
				attempt(by, round)
			}
		})
	}
	wg.Wait()
	slices.SortFunc(all, compareKeys)
	last, err := b.thisRelease(t.Context(), all, commit)
	if err != nil {
		t.Fatal(err)
	}
	for d := range last {
		found[d]++
	}
	for _, k := range all {
		if n := found[k.Digest]; n != 1 {
			t.Errorf("%s %x was new %d times", k.ConnectionID, k.Digest, n)
		}
	}
	expect(t, "keys of either form", b.count(t, `(SELECT digest FROM relay.ledger_digests
		UNION SELECT digest FROM relay.ledger) AS either`), len(all))
}

// TestASignalOfAnotherConnectionIsAnother stores a thousand signals of each of two connections, with the same
// ids, and stores all again.
func TestASignalOfAnotherConnectionIsAnother(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var messages []sink.Message
	for _, connection := range []ident.ConnectionID{"con_a", "con_b"} {
		for n := range 100 {
			var signals []signal.Signal
			for i := range 10 {
				signals = append(signals, click(fmt.Sprintf("%d_%d", n, i)))
			}
			r := request(signals...)
			r.ConnectionID = connection
			messages = append(messages, signalsOf(r))
		}
	}
	for range 2 {
		b.record(t, messages...)
		expect(t, "signals", b.count(t, "relay.signals"), 2000)
		expect(t, "deliveries", b.count(t, "delivery.entries"), 2000)
		expect(t, "ledger", b.count(t, "relay.ledger_digests"), 2000)
		expect(t, "ledger before", b.count(t, "relay.ledger"), 0)
	}
}

// TestOldRowsAreAskedByTheirIndex: left alone, the planner reads all of relay.ledger for one batch.
func TestOldRowsAreAskedByTheirIndex(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `ALTER TABLE relay.ledger DISABLE TRIGGER insert_digest`)
	b.exec(t, `INSERT INTO relay.ledger (connection_id, digest)
		SELECT 'con_' || i % 10, gen_random_uuid() FROM generate_series(1, 20000) AS i`)
	b.exec(t, `ANALYZE relay.ledger`)
	keys := make([]sink.LedgerKey, 2000)
	for i := range keys {
		keys[i] = ledgerKey(i%10, i)
	}
	slices.SortFunc(keys, compareKeys)
	err := b.store.InTx(t.Context(), func(tx sink.Tx) error {
		if _, err := tx.InsertLedger(t.Context(), keys); err != nil {
			return err
		}
		var scanned, asked int
		err := tx.(pgx.Tx).QueryRow(t.Context(), `SELECT sum(seq_tup_read)::int, sum(idx_scan)::int
			FROM pg_stat_xact_user_tables WHERE relid IN
				(SELECT inhrelid FROM pg_inherits WHERE inhparent = 'relay.ledger'::regclass)`).
			Scan(&scanned, &asked)
		expect(t, "rows read by scans of the table", scanned, 1) // whether there is any
		expect(t, "look-ups in its index", asked, len(keys))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
