package systemtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"storefront.internal/deploy/fakeprovider/fake"
	"storefront.internal/deploy/local/services"
)

// Stores of every platform are loaded while products change and are deleted, webhooks come doubled, late, forged or not at all, the
// provider throttles and fails each twentieth call, and control is killed three times. In the end every aggregate is the
// provider's truth, nothing that was deleted came back, and no revision ever fell. SEED repeats what is done to the stores.
func TestConnectorRun(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		check(t, err)
	}
	products, begun := soak(500, 20_000), time.Now()
	p := newPlatform(t, fake.Config{Products: products, Orders: 5, Plan: 10, Retries: quickRetries(240)})
	x := newTopology(t, p.configure, func(s *services.Settings) { s.ControlMore = []string{"CONTROL_CATCH_UP_EVERY=3s"} })
	x.refuseFalls()
	p.deliversTo(x)
	edge := x.edge()
	well := p.misbehaves()

	lives := make([]*life, len(brands()))
	var living, watching sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i, b := range brands() {
		l := newLife(x.opensAt(p, b), rand.New(rand.NewPCG(seed, uint64(i))), products)
		living.Go(l.live)
		watching.Go(func() { l.watch(ctx, edge) })
		lives[i] = l
	}
	x.killedThrice(p, lives, products)
	living.Wait()
	well()
	for _, l := range lives {
		l.settles()
		t.Logf("%-12s %d changed, %d deleted, %d made; webhooks: %+v", l.brand.name, len(l.changed), len(l.deleted), len(l.made), l.told)
	}
	cancel()
	watching.Wait()
	if x.fell() {
		t.Error("the database refused a revision that fell, or a product that had been deleted")
	}
	t.Logf("3 stores of %d products, seed %d, %s in all", products, seed, time.Since(begun).Round(time.Millisecond))
}

// killedThrice kills control amid the subscriptions, amid the loads and amid the webhooks, and starts it again each time.
func (x *topology) killedThrice(p *platform, lives []*life, products int) {
	x.t.Helper()
	sum := func(query string) int { return x.number("SELECT coalesce(sum(n), 0)::int FROM (" + query + ") AS q") }
	for _, moment := range []struct {
		what  string
		there func() bool
	}{
		{"amid the subscriptions", func() bool {
			for _, l := range lives {
				if l.registered(3) == nil {
					return true
				}
			}
			return false
		}},
		{"amid the loads", func() bool {
			return sum("SELECT (resources->'resources'->'product'->>'read')::int AS n FROM control.bootstrap_runs") >= products/4
		}},
		{"amid the webhooks", func() bool {
			return sum("SELECT count(*) AS n FROM control.webhook_deliveries") >= products/10
		}},
	} {
		eventually(x.t, long(), moment.what, func() error {
			if !moment.there() {
				return fmt.Errorf("not yet")
			}
			return nil
		})
		x.control.Kill()
		x.t.Logf("killed %s: %d products read, %d webhooks taken, %d loads and %d fetches under way", moment.what,
			sum("SELECT (resources->'resources'->'product'->>'read')::int AS n FROM control.bootstrap_runs"),
			sum("SELECT count(*) AS n FROM control.webhook_deliveries"),
			sum("SELECT count(*) AS n FROM control.bootstrap_runs WHERE state = 'running'"),
			sum("SELECT count(*) AS n FROM control.river_job WHERE state = 'running' AND kind = 'entity_refresh'"))
		x.minutePasses()
		x.startControl()
		p.deliversTo(x)
	}
}

// long is for a failure, not for the rule.
func long() time.Duration { return time.Duration(soak(150, 1800)) * time.Second }

// misbehaves has each twentieth call of every provider fail in turns of its ways, until what it answers is called.
func (p *platform) misbehaves() (well func()) {
	p.t.Helper()
	const every = 20
	ways := []map[string]any{
		{"status": 500, "every": every}, {"answer": "drop", "every": every}, {"status": 429, "retry_after": 1, "every": every},
		{"answer": "html", "every": every}, {"status": 503, "every": every}, {"hang_ms": 300, "every": every},
	}
	stop := make(chan struct{})
	var turns sync.WaitGroup
	turns.Go(func() {
		for i := 0; ; i++ {
			p.behave(ways[i%len(ways)])
			select {
			case <-stop:
				p.behave(map[string]any{})
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	})
	return func() {
		close(stop)
		turns.Wait()
	}
}

// behave tells every provider how to answer.
func (p *platform) behave(api map[string]any) {
	status, err := ask(p.t, http.MethodPost, p.url+"/debug/behaviour", map[string]any{"api": api}, nil)
	if err != nil || status >= 300 {
		p.t.Errorf("behaviour: %d %v", status, err)
	}
}

// refuseFalls has the database itself refuse a revision that falls and a product that comes back, and count what it refused.
func (x *topology) refuseFalls() {
	x.t.Helper()
	for _, statement := range []string{
		"CREATE SEQUENCE public.refusals", `
CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
	PERFORM nextval('public.refusals'); -- stays when the transaction goes
	RAISE EXCEPTION 'refused in %', TG_TABLE_NAME;
END $$`, `
CREATE TRIGGER refuse BEFORE UPDATE ON control.entities FOR EACH ROW
WHEN (NEW.revision < OLD.revision OR NEW.revision = OLD.revision AND NEW.observation_id <> OLD.observation_id
	OR NEW.entity = 'product' AND OLD.operation = 'delete' AND NEW.operation <> 'delete')
EXECUTE FUNCTION public.refuse()`, `
CREATE TRIGGER refuse BEFORE UPDATE ON control.aggregates FOR EACH ROW
WHEN (NEW.refresh_revision < OLD.refresh_revision OR NEW.refresh_revision = OLD.refresh_revision AND NEW.body IS DISTINCT FROM OLD.body
	OR OLD.body IS NULL AND NEW.body IS NOT NULL)
EXECUTE FUNCTION public.refuse()`,
	} {
		if _, err := x.pool.Exec(context.Background(), statement); err != nil {
			x.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// fell tells whether the database refused anything.
func (x *topology) fell() bool {
	return x.number("SELECT CASE WHEN is_called THEN 1 ELSE 0 END FROM public.refusals") == 1
}
