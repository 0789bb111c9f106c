package pods

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"storefront.internal/helm/e2e/program"
)

// outcome is what happened to the loads during a disturbance.
type outcome struct {
	kept, fresh *load
	stall       time.Duration
	took        time.Duration // the disturbance
	err         error         // of the disturbance
}

func (o outcome) failed() int { return o.kept.failed() + o.fresh.failed() }

// disturb runs a disturbance under both loads: from 5 s after their start to 5 s before their end.
func disturb(t *testing.T, name string, disturbance func() error) outcome {
	t.Helper()
	url := serviceURL(t, "storefront-edge", 80)
	o := outcome{kept: newLoad(url, name+"-kept", shared.shop, false),
		fresh: newLoad(url, name+"-fresh", shared.shop, true)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { o.kept.run(ctx) })
	all.Go(func() { o.fresh.run(ctx) })
	all.Go(func() { o.stall = watch(ctx) })
	time.Sleep(5 * time.Second)
	began := time.Now()
	o.err = disturbance()
	o.took = time.Since(began)
	time.Sleep(5 * time.Second)
	stop()
	all.Wait()
	t.Logf("%s took %.1f s; the machine's longest stall was %s\n  %s\n  %s", name, o.took.Seconds(),
		o.stall.Round(time.Millisecond), o.kept, o.fresh)
	judge(t, o)
	return o
}

// judge checks that everything that was accepted gets to the engine, once.
func judge(t *testing.T, o outcome) {
	t.Helper()
	err := program.Wait(2*time.Minute, func() error {
		got, missing, twice := received(t), 0, 0
		for _, l := range []*load{o.kept, o.fresh} {
			for _, id := range l.accepted {
				switch got[id].created {
				case 0:
					missing++
				case 1:
				default:
					twice++
				}
			}
		}
		if missing+twice > 0 {
			return fmt.Errorf("of the accepted signals, the engine lacks %d and created %d twice",
				missing, twice)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// undisturbed fails when a request fails during the disturbance. It is repeated when the machine stalled.
func undisturbed(t *testing.T, name string, disturbance func() error) {
	t.Helper()
	for attempt := 1; ; attempt++ {
		o := disturb(t, fmt.Sprintf("%s-%d", name, attempt), disturbance)
		switch {
		case o.err != nil:
			t.Fatal(o.err)
		case o.failed() == 0:
			return
		case o.stall < stalled:
			t.Fatalf("%d requests failed on a machine that did not stall", o.failed())
		case attempt == 3:
			t.Fatalf("%d requests failed, but the machine stalls: run this on one that is not shared",
				o.failed())
		}
	}
}
