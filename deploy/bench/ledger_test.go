package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/deploy/stack"
)

// ledgerRows is how many signals the ledger holds in the benchmarks of a filled one (LEDGER_ROWS).
func ledgerRows(b *testing.B) int {
	text := os.Getenv("LEDGER_ROWS")
	if text == "" {
		return 20_000_000
	}
	n, err := strconv.Atoi(text)
	check(b, err)
	return n
}

// ledgerForm is a form of the ledger's row, with the statement that inserts keys of one connection.
type ledgerForm struct{ name, table, columns, key, insert string }

var ledgerForms = []ledgerForm{
	{
		"connection and digest (of the release before)", "ledger_text",
		`connection_id text COLLATE "C" NOT NULL, digest uuid NOT NULL,
			stored_at timestamptz NOT NULL DEFAULT now()`,
		"connection_id, digest",
		`INSERT INTO ledger_text (connection_id, digest) SELECT $1, digest
			FROM unnest($2::uuid[]) WITH ORDINALITY AS k (digest, n) ORDER BY n
			ON CONFLICT DO NOTHING RETURNING digest`,
	},
	{
		"digest", "ledger_digest",
		`digest uuid NOT NULL, stored_at timestamptz NOT NULL DEFAULT now()`,
		"digest",
		`INSERT INTO ledger_digest (digest) SELECT digest
			FROM unnest($2::uuid[]) WITH ORDINALITY AS k (digest, n) WHERE $1 <> '' ORDER BY n
			ON CONFLICT DO NOTHING RETURNING digest`,
	},
}

// BenchmarkLedgerForms fills ledgers of each form in turns, by the transactions of the sink, and compares
// their size, their cost while they are nearly empty and when they are full, and the WAL that they write.
func BenchmarkLedgerForms(b *testing.B) {
	rows.begin(b)
	server := os.Getenv("TEST_DATABASE_URL")
	if server == "" {
		b.Skip("SKIPPED: needs PostgreSQL: use `make bench-ledger`")
	}
	url, err := stack.WithDatabase(server, "bench_"+random(6))
	check(b, err)
	ctx := context.Background()
	admin, err := pgx.Connect(ctx, server)
	check(b, err)
	defer func() { _ = admin.Close(ctx) }()
	cfg, err := pgx.ParseConfig(url)
	check(b, err)
	_, err = admin.Exec(ctx, "CREATE DATABASE "+cfg.Database)
	check(b, err)
	b.Cleanup(func() { dropDatabase(b, url) })
	conn, err := pgx.ConnectConfig(ctx, cfg)
	check(b, err)
	defer func() { _ = conn.Close(ctx) }()
	runs := make([]*ledgerRun, len(ledgerForms))
	for i, f := range ledgerForms {
		runs[i] = &ledgerRun{ledgerForm: f, conn: conn}
		runs[i].create(b)
	}
	total := ledgerRows(b) / transaction
	window := max(1, total/100)
	for n := range total {
		for _, r := range runs {
			r.transaction(b)
		}
		if n == window || n == total-1-window {
			_, err := conn.Exec(ctx, "CHECKPOINT")
			check(b, err)
			for _, r := range runs {
				r.begin(b)
			}
		}
		if n == 2*window || n == total-1 {
			for _, r := range runs {
				r.end(b)
			}
		}
	}
	for _, r := range runs {
		rows.add("ledger of %d rows, %s: %s", total*transaction, r.name, r.report(b))
	}
	b.ReportMetric(0, "ns/op")
}

// ledgerRun is a ledger that is filled. A window of it is measured at the beginning and one at the end.
type ledgerRun struct {
	ledgerForm
	conn    *pgx.Conn
	took    time.Duration // of the transactions of the open window
	wal     float64
	keys    int
	windows []ledgerWindow
}

type ledgerWindow struct{ micros, wal float64 } // a row

func (r *ledgerRun) create(b *testing.B) {
	ctx := context.Background()
	_, err := r.conn.Exec(ctx, fmt.Sprintf(`CREATE TABLE %s (%s, PRIMARY KEY (%s)) PARTITION BY HASH (digest)`,
		r.table, r.columns, r.key))
	check(b, err)
	for part := range 16 {
		_, err := r.conn.Exec(ctx, fmt.Sprintf(
			`CREATE TABLE %s_%02d PARTITION OF %s FOR VALUES WITH (MODULUS 16, REMAINDER %d)`,
			r.table, part, r.table, part))
		check(b, err)
	}
}

func (r *ledgerRun) begin(*testing.B) { r.took, r.wal, r.keys = 0, 0, 0 }

func (r *ledgerRun) end(*testing.B) {
	n := float64(r.keys)
	r.windows = append(r.windows, ledgerWindow{float64(r.took.Microseconds()) / n, r.wal / n})
}

func (r *ledgerRun) position(b *testing.B) (at float64) {
	check(b, r.conn.QueryRow(context.Background(),
		`SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn`).Scan(&at))
	return at
}

// transaction inserts new keys of one connection, in their order, as the sink does.
func (r *ledgerRun) transaction(b *testing.B) {
	ctx := context.Background()
	digests := make([][16]byte, transaction)
	for i := range digests {
		_, err := rand.Read(digests[i][:])
		check(b, err)
	}
	slices.SortFunc(digests, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
	connection := fmt.Sprintf("con_%022d", r.keys/transaction%1000)
	before, begun := r.position(b), time.Now()
	found, err := r.conn.Query(ctx, r.insert, connection, digests)
	check(b, err)
	inserted, err := pgx.CollectRows(found, pgx.RowTo[[16]byte])
	check(b, err)
	if len(inserted) != transaction {
		b.Fatalf("%d rows are new", len(inserted))
	}
	r.took += time.Since(begun)
	r.wal += r.position(b) - before
	r.keys += transaction
}

func (r *ledgerRun) report(b *testing.B) string {
	var table, index int64
	check(b, r.conn.QueryRow(context.Background(), `
		SELECT sum(pg_table_size(inhrelid)), sum(pg_indexes_size(inhrelid))
		FROM pg_inherits WHERE inhparent = $1::regclass`, r.table).Scan(&table, &index))
	n := float64(ledgerRows(b) / transaction * transaction)
	first, last := r.windows[0], r.windows[1]
	return fmt.Sprintf("%.1f bytes a row (table %.1f, index %.1f), %.1f GB; "+
		"%.1f and at the end %.1f µs a row (× %.2f); WAL %.0f and %.0f bytes a row",
		float64(table+index)/n, float64(table)/n, float64(index)/n,
		float64(table+index)/1e9, first.micros, last.micros, last.micros/first.micros, first.wal, last.wal)
}
