package pods

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"storefront.internal/helm/e2e/program"
)

// disturbance is what a test does to the release under load. The preparation comes before each attempt,
// without load, so that an attempt does the same as the one before it.
type disturbance struct {
	name    string
	prepare func() error // nil: nothing
	run     func() error
}

// outcome is what happened to the loads during a disturbance.
type outcome struct {
	name        string
	kept, fresh *load
	missing     int // accepted, and not at the engine
	twice       int // created more than once by the engine
	stall       time.Duration
	took        time.Duration // the disturbance
	err         error         // of the disturbance
}

func (o outcome) failed() int { return o.kept.failed() + o.fresh.failed() }

// disturb runs a disturbance under both loads: from 5 s after their start until the last pod that it ended
// is gone, and 5 s more.
func disturb(t *testing.T, name string, run func() error) outcome {
	t.Helper()
	url := serviceURL(t, "storefront-edge", 80)
	o := outcome{name: name}
	var err, freshErr error
	o.kept, err = newLoad(url, name+"-kept", shared.shop, false)
	o.fresh, freshErr = newLoad(url, name+"-fresh", shared.shop, true)
	if err = errors.Join(err, freshErr); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { o.kept.run(ctx) })
	all.Go(func() { o.fresh.run(ctx) })
	var watchErr error
	all.Go(func() { o.stall, watchErr = watch(ctx) })
	all.Go(func() { shared.keepLogs(ctx, name) })
	time.Sleep(5 * time.Second)
	began := time.Now()
	o.err = errors.Join(run(), program.Wait(2*time.Minute, noPodEnds))
	o.took = time.Since(began)
	time.Sleep(5 * time.Second)
	stop()
	all.Wait()
	o.err = errors.Join(o.err, watchErr)
	t.Logf("%s took %.1f s; the machine's longest stall was %s\n  %s\n  %s", name, o.took.Seconds(),
		o.stall.Round(time.Millisecond), o.kept, o.fresh)
	judge(t, &o)
	shared.outcomes = append(shared.outcomes, o)
	return o
}

// keepLogs links the logs of the release's pods into a folder until ctx ends: the kubelet removes those of
// pods that are gone.
func (c *cluster) keepLogs(ctx context.Context, folder string) {
	folder = c.path("logs-" + folder)
	_ = os.MkdirAll(folder, 0o755) // the logs help to explain a failure; a test does not need them
	for ctx.Err() == nil {
		found, _ := filepath.Glob(c.path("node-*/log/pods/" + namespace + "_storefront-*/*/*.log"))
		for _, path := range found {
			container := filepath.Dir(path)
			pod := strings.Split(filepath.Base(filepath.Dir(container)), "_")[1]
			_ = os.Link(path, filepath.Join(folder, pod+"-"+filepath.Base(path)))
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// noPodEnds returns an error while a pod of the release is being deleted.
func noPodEnds() error {
	all, err := listPods("")
	for _, p := range all {
		if p.Metadata.DeletionTimestamp != "" {
			err = errors.Join(err, fmt.Errorf("pod %s has not ended", p.Metadata.Name))
		}
	}
	return err
}

// judge checks that everything that was accepted gets to the engine, once.
func judge(t *testing.T, o *outcome) {
	t.Helper()
	err := program.Wait(2*time.Minute, func() error {
		shared.receive(t)
		o.missing, o.twice = 0, 0
		for _, l := range []*load{o.kept, o.fresh} {
			for _, id := range l.accepted {
				switch shared.created[id] {
				case 0:
					o.missing++
				case 1:
				default:
					o.twice++
				}
			}
		}
		if o.missing+o.twice > 0 {
			return fmt.Errorf("of the accepted signals, the engine lacks %d and created %d twice",
				o.missing, o.twice)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, l := range []*load{o.kept, o.fresh} {
		for _, id := range l.refused {
			if shared.created[id] > 0 {
				t.Logf("%s got no answer of success, and is at the engine", id)
			}
		}
	}
}

// undisturbed fails when a request fails during the disturbance. It is repeated when the machine stalled.
func undisturbed(t *testing.T, d disturbance) {
	t.Helper()
	for attempt := 1; ; attempt++ {
		if d.prepare != nil {
			if err := d.prepare(); err != nil {
				t.Fatal(err)
			}
		}
		if err := program.Wait(2*time.Minute, noPodEnds); err != nil { // of the test before
			t.Fatal(err)
		}
		o := disturb(t, fmt.Sprintf("%s-%d", d.name, attempt), d.run)
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

// table lists the outcomes.
func table(outcomes []outcome) string {
	text := fmt.Sprintf("%-18s %7s %7s %9s %7s %7s %6s %9s\n", "disturbance", "seconds", "sent", "accepted",
		"failed", "missing", "twice", "stall ms")
	for _, o := range outcomes {
		accepted := len(o.kept.accepted) + len(o.fresh.accepted)
		text += fmt.Sprintf("%-18s %7.1f %7d %9d %7d %7d %6d %9d\n", o.name, o.took.Seconds(),
			o.kept.sent+o.fresh.sent, accepted, o.failed(), o.missing, o.twice, o.stall.Milliseconds())
	}
	return text
}
