//go:build web

package webtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/deploy/stack/link"
	"storefront.internal/deploy/webtest/browser"
)

// plan is the size of a campaign: `make web-campaign` sets the variables.
type plan struct {
	browser string
	visits  int
	seed    uint64
	at      int // shoppers at the same time
	faults  bool
}

func number(name string, fallback int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return fallback
}

const visitsOfAShopper = 4

// Shoppers come, act and leave in every way, while the way to the edge fails and stores behind it stand
// still. After at most one more visit of each, every signal that a page minted is at the engine exactly once.
func TestCampaign(t *testing.T) {
	t.Parallel()
	for _, name := range strings.Fields(os.Getenv("WEB_BROWSERS")) {
		t.Run(name, func(t *testing.T) {
			seed := uint64(number("WEB_SEED", int(time.Now().UnixNano()%1e6)))
			visits := number("WEB_VISITS_"+strings.ToUpper(name), number("WEB_VISITS", 40))
			campaign(t, plan{browser: name, visits: visits, seed: seed, at: number("WEB_SHOPPERS", 4),
				faults: true})
		})
	}
}

// Without faults, few signals are sent more than once: what sending at the end of a page costs.
func TestFewSignalsAreSentTwice(t *testing.T) {
	visits := number("WEB_VISITS_QUIET", 0)
	if visits == 0 {
		t.Skip("the share is a measurement of a quiet machine: `make web-all`")
	}
	c := campaign(t, plan{browser: browser.Chromium, visits: visits, seed: 7, at: 2})
	sent, again := c.counter.sent.Load(), c.counter.resent()
	share := float64(again) / float64(max(1, sent-int64(again)))
	t.Logf("%d signals were sent, %d of them once more without need (%.1f %%)", sent-int64(again), again,
		100*share)
	t.Log("sent more than once: ", c.counter.resentByType())
	if share > 0.15 {
		t.Errorf("%.1f %% were sent again, 15 %% are allowed", 100*share)
	}
	if n := c.counter.preflights.Load(); n != 0 {
		t.Errorf("%d preflight requests of operation 1", n)
	}
}

// running is a campaign.
type running struct {
	plan
	t       *testing.T
	harness *harness
	counter *counter
	links   *link.Set
	key     atomic.Pointer[client.Storefront]
	browser browser.Browser
	mu      sync.Mutex
	said    map[string]int
	out     map[string]bool // shoppers without a last visit
	stays   map[string][]stay
}

// stay is when a shopper opened a page and when the shopper began to leave it.
type stay struct{ opened, left time.Time }

func campaign(t *testing.T, p plan) *running {
	t.Helper()
	c := &running{plan: p, t: t, harness: newHarness(t), counter: newCounter(t), links: link.NewSet(),
		said: map[string]int{}, out: map[string]bool{},
		stays: map[string][]stay{}}
	shop := shared.shop
	c.key.Store(&shop)
	t.Cleanup(c.links.Close)
	b, err := browser.Start(t.Context(), p.browser, folder(t))
	check(t, err)
	c.browser = b
	t.Cleanup(b.Kill)
	begin := time.Now()
	stop := c.breakStores()
	c.play()
	stop()
	c.verdict(begin)
	return c
}

// play lets all shoppers do their visits, so many at a time.
func (c *running) play() {
	shoppers := make(chan int)
	var all sync.WaitGroup
	for range c.at {
		all.Go(func() {
			for n := range shoppers {
				s := &shopper{running: c, name: fmt.Sprintf("%s-%d-%d", c.plan.browser, c.seed, n),
					random: rand.New(rand.NewPCG(c.seed, uint64(n)))}
				if err := s.live(c.t.Context()); err != nil {
					c.say("trouble: " + err.Error())
					c.leaveOut(s.name, err)
				}
			}
		})
	}
	for n := range (c.visits + visitsOfAShopper - 1) / visitsOfAShopper {
		shoppers <- n
	}
	close(shoppers)
	all.Wait()
}

// leaveOut keeps a shopper out of the verdict who had no last visit, because the browser or the harness
// failed.
func (c *running) leaveOut(name string, err error) {
	if errors.Is(err, errWaits) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out[name] = true
}

func (c *running) say(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said[what]++
}

// breakStores lets Kafka and Redis stand still from time to time, so that the edge answers 503, and replaces
// the storefront key once. The returned function ends that.
func (c *running) breakStores() (stop func()) {
	if !c.faults {
		return func() {}
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		random := rand.New(rand.NewPCG(c.seed, 1<<40))
		for pause(ctx, time.Duration(8+random.IntN(10))*time.Second) == nil {
			store := shared.Redis
			if random.IntN(2) == 0 {
				store = shared.Brokers[0]
			}
			c.say(store.Name + " stood still")
			check(c.t, store.Pause())
			_ = pause(ctx, time.Duration(2+random.IntN(3))*time.Second) // ends early with the campaign
			check(c.t, store.Resume())
			if random.IntN(4) == 0 {
				c.replaceKey()
			}
		}
	})
	return func() { cancel(); all.Wait() }
}

// replaceKey revokes the key of all pages that are open but last visits; pages that open later have a new
// one. The first key is not revoked.
func (c *running) replaceKey() {
	ctx := c.t.Context()
	keys, err := shared.api.ListKeys(ctx, shared.shop.ConnectionID)
	check(c.t, err)
	fresh, err := shared.api.IssueKey(ctx, shared.shop.ConnectionID)
	check(c.t, err)
	old := c.key.Load().Key
	next := shared.shop
	next.Key = fresh.Secret
	c.key.Store(&next)
	for _, k := range keys {
		if k.Secret == old && old != shared.shop.Key {
			check(c.t, shared.api.RevokeKey(ctx, shared.shop.ConnectionID, k.APIKeyID))
			c.say("key revoked")
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// verdict asks the service for every signal that was minted.
func (c *running) verdict(begin time.Time) {
	c.t.Helper()
	var minted []string
	c.harness.mu.Lock()
	shoppers := len(c.harness.minted)
	for name, ids := range c.harness.minted {
		if !c.out[name] {
			minted = append(minted, ids...)
		}
	}
	c.harness.mu.Unlock()
	v, err := shared.judge(c.t.Context(), minted, 90*time.Second)
	check(c.t, err)
	for what, n := range c.said {
		c.t.Logf("%5d × %s", n, what)
	}
	c.t.Logf("%s, seed %d: %d visits in %s, %d signals minted, %d lost, %d double", c.plan.browser, c.seed,
		c.visits, time.Since(begin).Round(time.Second), len(minted), len(v.Lost), len(v.Doubled))
	c.t.Log(c.arrivals())
	if len(c.out)*10 > shoppers {
		c.t.Errorf("%d of %d shoppers had no last visit", len(c.out), shoppers)
	}
	if len(minted) == 0 {
		c.t.Error("nothing was minted")
	}
	// A revoked key leads to the header form, which needs them.
	if n := c.counter.preflights.Load(); n != 0 && c.said["key revoked"] == 0 {
		c.t.Errorf("%d preflight requests of operation 1", n)
	}
	for _, id := range append(v.Lost, v.Doubled...) {
		c.t.Errorf("%s: %s", id, c.counter.story(id))
	}
}

// arrivals says when the signals reached the edge: while their page was open, when it was left, or by a later
// visit. One whose answer was lost on the way counts from its first arrival.
func (c *running) arrivals() string {
	c.harness.mu.Lock()
	defer c.harness.mu.Unlock()
	c.counter.mu.Lock()
	defer c.counter.mu.Unlock()
	var open, leaving, later int
	for name, ids := range c.harness.minted {
		for _, id := range ids {
			taken, known := c.counter.taken[id]
			minted := c.harness.at[id]
			next := slices.IndexFunc(c.stays[name], func(s stay) bool { return s.opened.After(minted) })
			i := next - 1 // the page that minted it
			switch {
			case !known || i < 0: // of a shopper whom the verdict leaves out
			case taken.Before(c.stays[name][i].left):
				open++
			case taken.After(c.stays[name][next].opened):
				later++
			default:
				leaving++
			}
		}
	}
	return fmt.Sprintf("%d signals arrived while their page was open, %d when it was left, %d by a later "+
		"visit", open, leaving, later)
}

// stayed notes one page of a shopper.
func (c *running) stayed(name string, s stay) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stays[name] = append(c.stays[name], s)
}

// openLink puts a link of a shopper's own before the counter.
func (c *running) openLink(name string) (*link.Link, error) {
	listen, err := project.ClaimAddress()
	if err != nil {
		return nil, err
	}
	return c.links.Open(name, listen, strings.TrimPrefix(c.counter.URL, "http://"))
}
