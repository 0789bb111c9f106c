package redis

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"

	"storefront.internal/edge/internal/claims"
	"storefront.internal/edge/internal/claims/claimstest"
	"storefront.internal/edge/internal/intake"
	"storefront.internal/edge/internal/intake/intaketest"
	"storefront.internal/edge/internal/redisbatch"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/testkit"
)

// testTimeout is the tests' timeout: a busy machine is no dead Redis.
const testTimeout = 30 * time.Second

// open returns a client of the real server and a prefix of the test's own.
func open(t testing.TB) (goredis.UniversalClient, string) {
	t.Helper()
	addr, prefix := testkit.Redis(t)
	client := redisbatch.NewClient(settings.Redis{RedisAddrs: []string{addr}}, testTimeout)
	t.Cleanup(func() { _ = client.Close() })
	return client, prefix
}

func newBatcher(t testing.TB, client goredis.UniversalClient) *redisbatch.Batcher {
	b := redisbatch.NewBatcher(client, 2, testTimeout)
	t.Cleanup(b.Close)
	return b
}

func older(t *testing.T, client goredis.UniversalClient, key string, by time.Duration) {
	t.Helper()
	left, err := client.PTTL(context.Background(), key).Result()
	if err != nil || left <= 0 {
		t.Fatalf("no key %s to make older: %v, %v", key, left, err)
	}
	if err := client.PExpire(context.Background(), key, left-by).Err(); err != nil {
		t.Fatal(err)
	}
}

func claimName(c *Claims, key claims.Key) string { return c.claimName(&key) }

// subject is the real implementation on that client.
func subject(t testing.TB, client goredis.UniversalClient, prefix string, clustered bool) claimstest.Subject {
	c := NewClaims(newBatcher(t, client), prefix, clustered)
	return claimstest.Subject{
		Store: c,
		Age: func(t *testing.T, key claims.Key, by time.Duration) {
			older(t, client, claimName(c, key), by)
		},
		AgeEpoch: func(t *testing.T, by time.Duration) {
			names, err := client.Keys(context.Background(), prefix+"claims:epoch*").Result()
			if err != nil || len(names) != 1 {
				t.Fatalf("epochs %v, %v", names, err)
			}
			older(t, client, names[0], by)
		},
	}
}

// TestClaimsConform runs the suite of the fake over the real server, with and without hash tags.
func TestClaimsConform(t *testing.T) {
	for name, clustered := range map[string]bool{"single": false, "tagged": true} {
		t.Run(name, func(t *testing.T) {
			claimstest.Conformance(t, func(t *testing.T) claimstest.Subject {
				client, prefix := open(t)
				return subject(t, client, prefix, clustered)
			})
		})
	}
}

// TestClaimsConformOnStandIn runs it over the stand-in that the local stack uses.
func TestClaimsConformOnStandIn(t *testing.T) {
	claimstest.Conformance(t, func(t *testing.T) claimstest.Subject {
		client := redisbatch.NewClient(settings.Redis{RedisAddrs: []string{miniredis.RunT(t).Addr()}},
			testTimeout)
		t.Cleanup(func() { _ = client.Close() })
		return subject(t, client, "sf:", false)
	})
}

// TestTags: a claim and its epoch are in one slot of a cluster.
func TestTags(t *testing.T) {
	c := NewClaims(nil, "sf:", true)
	key := claims.Key{37}
	if got := claimName(c, key); got != "sf:claim:{5}JQAAAAAAAAAAAAAAAAAAAA" {
		t.Errorf("claim %s", got)
	}
	if got := c.epochNames([]claims.Key{key, key}); len(got) != 1 || got[0] != "sf:claims:epoch:{5}" {
		t.Errorf("epochs %s", got)
	}
}

// TestRace: 64 clients send identical and overlapping batches to two processes at the same time. Each signal
// is accepted once, no duplicate is false, and every client is answered.
func TestRace(t *testing.T) {
	client, prefix := open(t)
	log := &intaketest.Log{}
	checker := &intaketest.Checker{Log: log}
	var edges []*intake.Service
	for range 2 {
		c := NewClaims(newBatcher(t, client), prefix, false)
		edges = append(edges, intaketest.Service(c, log, &intaketest.Ledger{Log: log}, nil))
	}
	const clients, ids = 64, 20
	now := time.Now()
	batch := func(i int) []string {
		var all []string
		for k := range ids {
			n := k
			if i%2 == 1 {
				n = ids - 1 - (k+i)%ids // overlapping, in another order
			}
			all = append(all, "sig_race"+string(rune('a'+n)))
		}
		if i%4 == 3 {
			return all[:ids/2]
		}
		return all
	}
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range clients {
		wg.Go(func() {
			<-start
			var results []signal.Result
			err := errors.New("not sent")
			for try := 0; err != nil && try < 20; try++ { // a busy machine may let a deadline pass
				results, err = edges[i%2].Record(context.Background(), intaketest.Request(now, batch(i)...),
					nil)
			}
			if err != nil {
				checker.Fail("client %d: %v", i, err)
				return
			}
			checker.Answer(results)
		})
	}
	close(start)
	wg.Wait()
	for k := range ids {
		if id := "sig_race" + string(rune('a'+k)); checker.Accepted(id) != 1 {
			checker.Fail("%s accepted %d times", id, checker.Accepted(id))
		}
	}
	if err := checker.Err(); err != nil {
		t.Error(err)
	}
}

// TestTakeoverAndResend: the claim of a dead holder is taken over after claims.TakeoverAfter, and the holder
// would find out.
func TestTakeoverAndResend(t *testing.T) {
	client, prefix := open(t)
	log := &intaketest.Log{}
	c := NewClaims(newBatcher(t, client), prefix, false)
	edge := intaketest.Service(c, log, &intaketest.Ledger{Log: log}, nil)
	key := intaketest.KeyOf("con_1", "sig_dead")
	if err := c.StartEpoch(t.Context(), []claims.Key{key}, true); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Claim(t.Context(), []claims.Key{key}, "dead-1:7", make([]string, 1)); err != nil {
		t.Fatal(err)
	}
	older(t, client, claimName(c, key), 11*time.Second) // its holder is dead
	for _, want := range []string{"accepted", "duplicate"} {
		results, err := edge.Record(t.Context(), intaketest.Request(time.Now(), "sig_dead"), nil)
		if err != nil || string(results[0].Status) != want {
			t.Errorf("got %+v, %v; want %s", results, err, want)
		}
	}
	var previous [1]claims.Status
	if err := c.Resolve(t.Context(), []string{"dead-1"}, claims.Done, previous[:]); err != nil ||
		previous[0] != claims.Lost {
		t.Errorf("a holder that comes back finds %q, %v", previous[0], err)
	}
}
