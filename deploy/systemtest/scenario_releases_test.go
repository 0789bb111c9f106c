package systemtest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	kafkago "github.com/segmentio/kafka-go"

	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/shared/testkit"
)

// release is a release of the service: a database, topics, a consumer group and a Redis prefix of its own, on
// a Kafka and a Redis Cluster that it shares with another release.
type release struct {
	*deployment
	edge               *stack.Process
	signals, decisions string
	prefix, password   string
	shop               *shopper
	decision           client.Decision
	sent               []client.Signal
}

// Two releases share a Kafka and a Redis Cluster. Both serve, record, deliver, issue and revoke keys, publish
// items and erase a shopper, and neither sees anything of the other. Each has a Redis user that may touch
// nothing but the keys and channels of its prefix, by the ACL that the chart's README gives, so that a key
// without the prefix fails the test.
func TestTwoReleasesSideBySide(t *testing.T) {
	t.Parallel()
	server := startSharedRedis(t)
	a, b := newRelease(t, server), newRelease(t, server)
	both := []*release{a, b}
	for _, r := range both {
		r.open(t)
	}
	for range 5 { // in turns, so that the topics of both are read at the same time
		for _, r := range both {
			r.visit()
		}
	}
	a.shop.awaitChanges([]*stack.Process{a.edge})
	for _, r := range both {
		r.checkOwn(t)
	}
	t.Run("a key", func(t *testing.T) { checkForeignKey(t, a, b) })
	t.Run("a revocation", func(t *testing.T) { checkRevocation(t, a, b) })
	t.Run("an erasure", func(t *testing.T) { checkErasure(t, a, b) })
	t.Run("flushed keys", func(t *testing.T) { checkFlush(t, a, b, server) })
	for _, r := range both {
		r.checkTopics(t)
		r.checkPermissions(t)
		r.checkOwn(t)
		r.awaitDrained(t, r.shop.storefront)
	}
}

// startSharedRedis starts a Redis Cluster, and returns a client of it that may do everything.
func startSharedRedis(t *testing.T) *goredis.ClusterClient {
	t.Helper()
	cluster := startRedisCluster(t)
	admin := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: strings.Split(cluster.Addrs(), ",")})
	t.Cleanup(func() { _ = admin.Close() })
	return admin
}

// newRelease makes a release without processes.
func newRelease(t *testing.T, server *goredis.ClusterClient) *release {
	t.Helper()
	x := newDatabase(t)
	x.Settings.RedisAddr = strings.Join(server.Options().Addrs, ",")
	r := &release{deployment: x, signals: x.name + ".signals.v1", decisions: x.name + ".decisions.v1",
		prefix: x.name + ":", password: randomHex(8)}
	acl := documentedACL(t, x.name, r.prefix, r.password)
	check(t, server.ForEachMaster(t.Context(), func(ctx context.Context, c *goredis.Client) error {
		return c.Do(ctx, acl...).Err()
	}))
	return r
}

// documentedACL is the statement of the chart's README for a user, a prefix and a password.
func documentedACL(t *testing.T, user, prefix, password string) (words []any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(shared.project.Root, "helm/storefront/README.md"))
	check(t, err)
	line := regexp.MustCompile(`(?m)^\s*(ACL SETUSER storefront .*)$`).FindSubmatch(text)
	if line == nil {
		t.Fatal("the chart's README has no ACL for Redis")
	}
	for _, word := range strings.Fields(string(line[1])) {
		switch {
		case word == "storefront":
			word = user
		case strings.HasPrefix(word, "'>"):
			word = ">" + password
		case strings.HasPrefix(word, "~"), strings.HasPrefix(word, "&"):
			word = word[:1] + prefix + "*"
		}
		words = append(words, word)
	}
	return words
}

func (r *release) variables(service string, names ...string) (all []string) {
	values := map[string]string{"REDIS_USERNAME": r.name, "REDIS_PASSWORD": r.password,
		"KAFKA_SIGNALS_TOPIC": r.signals, "KAFKA_DECISIONS_TOPIC": r.decisions,
		"KAFKA_TOPIC_PARTITIONS": "2"}
	for _, name := range names {
		all = append(all, service+"_"+name+"="+values[name])
	}
	return all
}

// open starts the services, makes a connection, and serves its first Decision.
func (r *release) open(t *testing.T) {
	t.Helper()
	user := []string{"REDIS_USERNAME", "REDIS_PASSWORD"}
	topics := []string{"KAFKA_SIGNALS_TOPIC", "KAFKA_DECISIONS_TOPIC", "KAFKA_TOPIC_PARTITIONS"}
	r.startControl(r.variables("CONTROL", user...)...)
	r.edge = r.deployment.edge(r.variables("EDGE", slices.Concat(user, topics)...)...)
	r.relay(r.variables("RELAY", topics...)...)
	r.shop = newShopper(r.newStorefront())
	eventually(t, time.Minute, "a Decision of the engine", func() error {
		if r.decision = r.shop.recommend(r.edge); r.decision.Source != "engine" {
			return fmt.Errorf("%+v", r.decision)
		}
		return nil
	})
}

// visit records a batch, twice.
func (r *release) visit() {
	batch := cartBatch(r.decision, 4)
	r.shop.sends(r.edge, batch)
	if a := r.shop.must(r.edge, batch); a.count("duplicate") != len(batch) {
		r.t.Errorf("%s, again: %+v", r.name, a)
	}
	r.sent = append(r.sent, batch...)
}

// checkOwn waits until this release delivered what it recorded, and checks that its database and its engine
// have nothing else.
func (r *release) checkOwn(t *testing.T) {
	t.Helper()
	r.awaitDelivered(t, r.shop.storefront, idsOf(r.sent), time.Minute)
	for _, receipt := range r.engine.Receipts(0) {
		if !strings.Contains(string(receipt.Interaction), r.shop.ConnectionID) {
			t.Errorf("the engine of %s got %s", r.name, receipt.Interaction)
		}
	}
	for _, event := range r.engine.Observations(0) {
		if !strings.Contains(string(event), r.shop.ConnectionID) {
			t.Errorf("the engine of %s got %s", r.name, event)
		}
	}
	for table, want := range map[string]int{"relay.signals": len(r.sent), "relay.ledger_digests": len(r.sent),
		"relay.parked": 0, "control.connections": 1} {
		if n := r.number("SELECT count(*)::int FROM " + table); n != want {
			t.Errorf("%s of %s has %d rows, want %d", table, r.name, n, want)
		}
	}
	if n := r.number("SELECT count(*)::int FROM relay.decisions WHERE connection_id <> $1",
		r.shop.ConnectionID); n > 0 {
		t.Errorf("%s has %d Decisions of another release", r.name, n)
	}
}

// checkForeignKey: neither release knows the keys of the other, nor its connections.
func checkForeignKey(t *testing.T, a, b *release) {
	for _, pair := range [][2]*release{{a, b}, {b, a}} {
		own, other := pair[0], pair[1]
		for _, connection := range []string{own.shop.ConnectionID, other.shop.ConnectionID} {
			thief := &storefront{t: t, Storefront: client.Storefront{ConnectionID: connection,
				Key: own.shop.Key}}
			check(t, thief.checkKey(other.edge, own.shop.Key, http.StatusUnauthorized))
		}
	}
}

// checkRevocation: a key that a revokes is refused by a; b sees no change of keys and forgets none.
func checkRevocation(t *testing.T, a, b *release) {
	keys := a.shop.issue(a.deployment, []*stack.Process{a.edge}, 1)
	check(t, b.shop.checkKey(b.edge, b.shop.Key, http.StatusBadRequest)) // b's key is in its memory
	names := []string{"storefront_edge_key_changes_total", "storefront_edge_key_memory_emptied_total",
		`storefront_edge_key_lookups_total{source="store"}`, `storefront_edge_key_lookups_total{source="cache"}`}
	before := figures(t, b.edge, names...)
	seen := figures(t, a.edge, names[0])
	a.shop.revokeAll(a.deployment, []*stack.Process{a.edge}, keys, http.StatusUnauthorized)
	eventually(t, 30*time.Second, "the edge of a sees the change", func() error {
		if now := figures(t, a.edge, names[0]); slices.Equal(now, seen) {
			return fmt.Errorf("%v", now)
		}
		return nil
	})
	check(t, b.shop.checkKey(b.edge, b.shop.Key, http.StatusBadRequest))
	if after := figures(t, b.edge, names...); !slices.Equal(after, before) {
		t.Errorf("%v of b were %v and are %v", names, before, after)
	}
}

// checkErasure: a shopper whom both releases know is erased in a and stays in b.
func checkErasure(t *testing.T, a, b *release) {
	guest := &shopper{a.shop.storefront, b.shop.visitor, b.shop.page}
	batch := cartBatch(a.decision, 2)
	guest.sends(a.edge, batch)
	a.sent = append(a.sent, batch...)
	a.awaitStored(t, a.shop.storefront, len(a.sent))
	had := testkit.TablesContaining(t, b.pool, b.shop.visitor.VisitorID)
	a.erase(a.shop.ConnectionID, b.shop.visitor.VisitorID, http.StatusAccepted)
	a.awaitErased(t)
	if tables := testkit.TablesContaining(t, a.pool, b.shop.page); len(tables) > 0 {
		t.Errorf("the erased shopper is in %v of a", tables)
	}
	has := testkit.TablesContaining(t, b.pool, b.shop.visitor.VisitorID)
	if len(had) == 0 || !slices.Equal(had, has) {
		t.Errorf("the shopper was in %v of b and is in %v", had, has)
	}
}

// checkFlush: the keys of a are removed as its user; b's user's are out of its reach and stay. Both go on
// answering from what they have.
func checkFlush(t *testing.T, a, b *release, server *goredis.ClusterClient) {
	own, others := keysOf(t, server, a.prefix), keysOf(t, server, b.prefix)
	if all := keysOf(t, server, ""); len(own) == 0 || len(others) == 0 || len(all) != len(own)+len(others) {
		t.Fatalf("%d keys of a, %d of b, %d in all: %v", len(own), len(others), len(all), all)
	}
	as := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: server.Options().Addrs, Username: a.name,
		Password: a.password})
	defer func() { _ = as.Close() }()
	for _, key := range own {
		check(t, as.Unlink(t.Context(), key).Err())
	}
	if err := as.Unlink(t.Context(), others[0]).Err(); err == nil ||
		!strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("a's user removed %s: %v", others[0], err)
	}
	if err := as.Publish(t.Context(), b.prefix+"{keys}:changed", "1").Err(); err == nil ||
		!strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("a's user announced a change of b's keys: %v", err)
	}
	left := keysOf(t, server, b.prefix)
	for _, key := range others {
		if !slices.Contains(left, key) {
			t.Errorf("%s of b is gone", key)
		}
	}
	for _, r := range []*release{a, b} {
		batch := r.sent[:4]
		if got := r.shop.resend(r.edge, batch, time.Minute); got.count("duplicate") != len(batch) {
			t.Errorf("a resend to %s: %+v", r.name, got)
		}
		r.visit()
	}
}

func keysOf(t *testing.T, server *goredis.ClusterClient, prefix string) (keys []string) {
	t.Helper()
	var mu sync.Mutex
	check(t, server.ForEachMaster(t.Context(), func(ctx context.Context, c *goredis.Client) error {
		found, err := c.Keys(ctx, prefix+"*").Result()
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, found...)
		return err
	}))
	slices.Sort(keys)
	return keys
}

// checkPermissions: Redis refused no process anything. An edge without its channels would go on more slowly.
func (r *release) checkPermissions(t *testing.T) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(r.LogDir, "*.log"))
	check(t, err)
	for _, log := range logs {
		text, err := os.ReadFile(log)
		check(t, err)
		if at := strings.Index(string(text), "NOPERM"); at >= 0 || len(text) == 0 {
			t.Errorf("%s: %.300s", log, text[max(0, at-100):])
		}
	}
}

// checkTopics: the group of the release has offsets of its own topics only, and the topics hold its batches
// only.
func (r *release) checkTopics(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	transport := &kafkago.Transport{}
	defer transport.CloseIdleConnections()
	c := &kafkago.Client{Addr: kafkago.TCP(strings.Split(r.Settings.KafkaBrokers, ",")...),
		Transport: transport}
	committed, err := c.OffsetFetch(ctx, &kafkago.OffsetFetchRequest{GroupID: r.group})
	check(t, err)
	for topic := range committed.Topics {
		if topic != r.signals && topic != r.decisions {
			t.Errorf("the group %s reads %s", r.group, topic)
		}
	}
	ends, err := c.ListOffsets(ctx, &kafkago.ListOffsetsRequest{Topics: map[string][]kafkago.OffsetRequest{
		r.signals: {kafkago.LastOffsetOf(0), kafkago.LastOffsetOf(1)}}})
	check(t, err)
	var records int64
	for _, p := range ends.Topics[r.signals] {
		records += p.LastOffset
	}
	// Batches are of four signals but the guest's; a duplicate writes none. A busy edge may write one twice.
	if least := int64(len(r.sent) / 4); records < least || records > 2*least {
		t.Errorf("%s has %d records, and %d signals were recorded", r.signals, records, len(r.sent))
	}
}

// figures are the values of metrics of a process; one that is not there is 0.
func figures(t *testing.T, p *stack.Process, names ...string) []string {
	t.Helper()
	r := client.Do(t.Context(), httpClient, client.Request{Method: http.MethodGet,
		URL: "http://" + p.Admin + "/metrics", Timeout: 20 * time.Second})
	check(t, statusIs(r, http.StatusOK))
	values := make([]string, len(names))
	for line := range strings.Lines(string(r.Body)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if i := slices.Index(names, name); i >= 0 {
			values[i] = value
		}
	}
	return values
}
