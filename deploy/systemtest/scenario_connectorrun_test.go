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
	"storefront.internal/deploy/stack"
)

// Shops of every platform are loaded while products change and are deleted. Webhooks come twice, late, forged
// or not at all, the provider throttles and fails each twentieth call, and control is killed three times. At
// the end every aggregate equals the provider's catalog, no deleted product came back, and no revision ever
// fell. SEED repeats the same changes.
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
	x := newDeployment(t, p.configure,
		func(s *stack.Settings) { s.ControlMore = []string{"CONTROL_CATCH_UP_EVERY=3s"} })
	x.refuseRegressions()
	p.deliverTo(x)
	edge := x.edge()
	well := p.misbehave()

	lives := make([]*churn, len(providers()))
	var living, watching sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i, b := range providers() {
		l := newChurn(x.installShopAt(p, b), rand.New(rand.NewPCG(seed, uint64(i))), products)
		living.Go(l.run)
		watching.Go(func() { l.watch(ctx, edge) })
		lives[i] = l
	}
	x.killThrice(p, lives, products)
	living.Wait()
	well()
	for _, l := range lives {
		l.awaitTruth()
		t.Logf("%-12s %d changed, %d deleted, %d made; webhooks: %+v", l.provider.name, len(l.changed),
			len(l.deleted), len(l.made), l.webhooks)
	}
	cancel()
	watching.Wait()
	if x.regressed() {
		t.Error("the database refused a revision that fell, or a product that had been deleted")
	}
	t.Logf("3 stores of %d products, seed %d, %s in all", products, seed,
		time.Since(begun).Round(time.Millisecond))
}

// killThrice kills control amid the subscriptions, amid the bootstrap runs and amid the webhooks, and starts
// it again each time.
func (x *deployment) killThrice(p *platform, lives []*churn, products int) {
	x.t.Helper()
	sum := func(query string) int {
		return x.number("SELECT coalesce(sum(n), 0)::int FROM (" + query +
			") AS q")
	}
	for _, moment := range []struct {
		what  string
		there func() bool
	}{
		{"amid the subscriptions", func() bool {
			for _, l := range lives {
				if l.hasSubscriptions(3) == nil {
					return true
				}
			}
			return false
		}},
		{"amid the loads", func() bool {
			return sum("SELECT (resources->'resources'->'product'->>'read')::int AS n FROM "+
				"control.bootstrap_runs") >= products/4
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
		kill(x.t, x.control)
		x.t.Logf("killed %s: %d products read, %d webhooks taken, %d loads and %d fetches under way",
			moment.what,
			sum("SELECT (resources->'resources'->'product'->>'read')::int AS n FROM control.bootstrap_runs"),
			sum("SELECT count(*) AS n FROM control.webhook_deliveries"),
			sum("SELECT count(*) AS n FROM control.bootstrap_runs WHERE state = 'running'"),
			sum("SELECT count(*) AS n FROM control.river_job WHERE state = 'running' AND kind = "+
				"'entity_refresh'"))
		x.passMinute()
		x.controlAgain()
	}
}

// long is a limit that only a failure reaches.
func long() time.Duration { return time.Duration(soak(150, 1800)) * time.Second }

// misbehave lets each twentieth call of every provider fail, in several ways in turn, until the returned
// function is called.
func (p *platform) misbehave() (well func()) {
	p.t.Helper()
	const every = 20
	ways := []map[string]any{
		{"status": 500, "every": every}, {"answer": "drop", "every": every},
		{"status": 429, "retry_after": 1, "every": every},
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

// behave sets how every provider answers.
func (p *platform) behave(api map[string]any) {
	status, err := ask(p.t, http.MethodPost, p.url+"/debug/behaviour", map[string]any{"api": api}, nil)
	if err != nil || status >= 300 {
		p.t.Errorf("behaviour: %d %v", status, err)
	}
}

// refuseRegressions makes the database refuse and count a revision that falls and a deleted product that
// comes back.
func (x *deployment) refuseRegressions() {
	x.t.Helper()
	for _, statement := range []string{
		"CREATE SEQUENCE public.refusals", `
CREATE FUNCTION public.refuse() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
	PERFORM nextval('public.refusals'); -- stays when the transaction goes
	RAISE EXCEPTION 'refused in %', TG_TABLE_NAME;
END $$`, `
CREATE TRIGGER refuse BEFORE UPDATE ON control.entities FOR EACH ROW
WHEN (NEW.revision < OLD.revision OR NEW.revision = OLD.revision AND NEW.observation_id <> OLD.observation_id
	OR NEW.entity = 'product' AND OLD.operation = 'delete' AND NEW.operation <> 'delete')
EXECUTE FUNCTION public.refuse()`, `
CREATE TRIGGER refuse BEFORE UPDATE ON control.aggregates FOR EACH ROW
WHEN (NEW.refresh_revision < OLD.refresh_revision
	OR NEW.refresh_revision = OLD.refresh_revision AND NEW.body IS DISTINCT FROM OLD.body
	OR OLD.body IS NULL AND NEW.body IS NOT NULL)
EXECUTE FUNCTION public.refuse()`,
	} {
		if _, err := x.pool.Exec(context.Background(), statement); err != nil {
			x.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// regressed reports whether the database refused anything.
func (x *deployment) regressed() bool {
	return x.number("SELECT CASE WHEN is_called THEN 1 ELSE 0 END FROM public.refusals") == 1
}
