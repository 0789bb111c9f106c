package testkit

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"

	"storefront.internal/shared/pg/migrations"
)

func TestPostgresGivesFreshMigratedDatabases(t *testing.T) {
	t.Parallel()
	url := Postgres(t)
	current, want, err := migrations.Version(t.Context(), Pool(t, url))
	if err != nil || current != want || want == 0 {
		t.Fatalf("version %d of %d, %v", current, want, err)
	}
	if other := Postgres(t); other == url {
		t.Fatal("two tests share a database")
	}
	if _, err := Pool(t, url).Exec(t.Context(), `CREATE TABLE own (n int)`); err != nil {
		t.Fatal(err)
	}
}

func TestPostgresWithKeepsExtraInItsTemplate(t *testing.T) {
	t.Parallel()
	name := Name("x")
	extra := func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(ctx) }()
		_, err = conn.Exec(ctx, `CREATE TABLE extra (n int)`)
		return err
	}
	var wg sync.WaitGroup
	urls := make([]string, 3)
	for i := range urls {
		wg.Go(func() { urls[i] = PostgresWith(t, name, extra) })
	}
	wg.Wait()
	for _, url := range urls {
		if _, err := Pool(t, url).Exec(t.Context(), `SELECT n FROM extra`); err != nil {
			t.Error(err)
		}
	}
	template, err := templateName(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := execute(t.Context(), address(t, "TEST_DATABASE_URL"), "DROP DATABASE "+
		quote(template)); err != nil {
		t.Error(err)
	}
}

func TestPostgresAsIsTheGroupsMember(t *testing.T) {
	t.Parallel()
	url := Postgres(t)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			var member, super bool
			as := Pool(t, PostgresAs(t, url, "storefront_edge"))
			err := as.QueryRow(t.Context(),
				`SELECT pg_has_role('storefront_edge', 'member'), current_setting('is_superuser')::bool`).Scan(&member, &super)
			if err != nil || !member || super {
				t.Errorf("member %v, superuser %v, %v", member, super, err)
			}
		})
	}
	wg.Wait()
	if current, want, err := migrations.Version(t.Context(),
		Pool(t, PostgresAs(t, url, "storefront_relay"))); err != nil || current != want {
		t.Errorf("a service reads version %d of %d, %v", current, want, err)
	}
}

func TestRedisPrefixesDiffer(t *testing.T) {
	t.Parallel()
	addr, a := Redis(t)
	_, b := Redis(t)
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = client.Close() }()
	if err := client.Set(t.Context(), a+"k", 1, 0).Err(); err != nil || a == b {
		t.Fatalf("%q %q %v", a, b, err)
	}
}

func TestTopicCanBeWritten(t *testing.T) {
	t.Parallel()
	topic := Topic(t, 2)
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(Kafka(t)...), Transport: transport}
	res, err := client.Produce(t.Context(), &kafka.ProduceRequest{
		Topic: topic, Partition: 1, RequiredAcks: kafka.RequireAll,
		Records: kafka.NewRecordReader(kafka.Record{Value: kafka.NewBytes([]byte("x"))}),
	})
	if err != nil || res.Error != nil {
		t.Fatal(err, res)
	}
}
