package redis

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"

	"storefront.internal/edge/internal/intake"
	"storefront.internal/edge/internal/intake/claimstest"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/testkit"
)

// patience is the tests' budget: a busy machine is no dead Redis.
const patience = 30 * time.Second

// open returns a client of the real server and a prefix of the test's own.
func open(t testing.TB) (goredis.UniversalClient, string) {
	t.Helper()
	addr, prefix := testkit.Redis(t)
	client := newClient(settings.Redis{RedisAddrs: []string{addr}}, patience)
	t.Cleanup(func() { _ = client.Close() })
	return client, prefix
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

func claimName(c *Claims, key intake.ClaimKey) string { return string(c.appendClaimName(nil, &key)) }

// subject is the real implementation on that client.
func subject(t testing.TB, client goredis.UniversalClient, prefix string, clustered bool) claimstest.Subject {
	c := NewClaims(pipeline(t, client, 2), prefix, clustered)
	return claimstest.Subject{
		Claims: c,
		Age: func(t *testing.T, key intake.ClaimKey, by time.Duration) {
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

// TestClaimsConformOnStandIn runs it over the stand-in of the local stack.
func TestClaimsConformOnStandIn(t *testing.T) {
	claimstest.Conformance(t, func(t *testing.T) claimstest.Subject {
		client := newClient(settings.Redis{RedisAddrs: []string{miniredis.RunT(t).Addr()}}, patience)
		t.Cleanup(func() { _ = client.Close() })
		return subject(t, client, "sf:", false)
	})
}

// TestTags: a claim and the epoch that speaks of it lie in one slot.
func TestTags(t *testing.T) {
	c := NewClaims(nil, "sf:", true)
	key := intake.ClaimKey{37}
	if got := claimName(c, key); got != "sf:claim:{5}JQAAAAAAAAAAAAAAAAAAAA" {
		t.Errorf("claim %s", got)
	}
	if got := c.epochNames([]intake.ClaimKey{key, key}); len(got) != 1 || got[0] != "sf:claims:epoch:{5}" {
		t.Errorf("epochs %s", got)
	}
}

// TestRace: 64 clients send identical and overlapping batches to two processes at the same time. Each signal is
// accepted once, no duplicate is false, and everybody is answered.
func TestRace(t *testing.T) {
	client, prefix := open(t)
	log := &claimstest.Log{}
	checker := &claimstest.Checker{Log: log}
	var edges []*intake.Service
	for range 2 {
		c := NewClaims(pipeline(t, client, 2), prefix, false)
		edges = append(edges, claimstest.Service(c, log, &claimstest.Ledger{Log: log}))
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
				results, err = edges[i%2].Record(context.Background(), claimstest.Request(now, batch(i)...), nil)
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

// TestTakeoverAndResend: the claim of a dead owner is taken over after the lease, and the owner would hear of it.
func TestTakeoverAndResend(t *testing.T) {
	client, prefix := open(t)
	log := &claimstest.Log{}
	c := NewClaims(pipeline(t, client, 2), prefix, false)
	edge := claimstest.Service(c, log, &claimstest.Ledger{Log: log})
	key := claimstest.KeyOf("con_1", "sig_dead")
	if err := c.MarkEpoch(t.Context(), []intake.ClaimKey{key}, true); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Take(t.Context(), []intake.ClaimKey{key}, "dead-1:7", make([]string, 1)); err != nil {
		t.Fatal(err)
	}
	older(t, client, claimName(c, key), 11*time.Second) // its owner died with it
	for _, want := range []string{"accepted", "duplicate"} {
		results, err := edge.Record(t.Context(), claimstest.Request(time.Now(), "sig_dead"), nil)
		if err != nil || string(results[0].Status) != want {
			t.Errorf("got %+v, %v; want %s", results, err, want)
		}
	}
	var previous [1]intake.Register
	if err := c.Mark(t.Context(), []string{"dead-1"}, intake.Done, previous[:]); err != nil || previous[0] != intake.Lost {
		t.Errorf("an owner that comes back finds %q, %v", previous[0], err)
	}
}
