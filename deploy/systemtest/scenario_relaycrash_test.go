package systemtest

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"storefront.internal/deploy/local/services"
)

// A relay dies, or stands still, before and after its COMMIT and around a delivery; another one of its group goes on. Each case
// is a consumer group with a database and an engine of its own; one edge feeds them all.
func TestRelayCrash(t *testing.T) {
	t.Parallel()
	x := newTopology(t)
	edge := x.edge()
	s := x.newShop()
	cases := []string{
		"sink.before_commit kill", "sink.after_commit kill", "deliver.leased kill", "deliver.sent kill", "deliver.answered kill",
		"sink.before_commit stop", "sink.after_commit stop", "deliver.sent stop",
	}
	var siblings []*topology
	for range cases {
		siblings = append(siblings, x.sibling())
	}
	doomed := make([]*node, len(cases))
	for i, c := range cases {
		point, mode, _ := strings.Cut(c, " ")
		doomed[i] = siblings[i].relay(crash(point, mode), "RELAY_LEASE=5s")
	}
	d := s.recommend(edge)
	var ids []string
	for range 20 {
		batch := cartBatch(d, 10)
		s.must(edge, batch)
		ids = append(ids, idsOf(batch)...)
	}
	for i, c := range cases {
		t.Run(c, func(t *testing.T) {
			t.Parallel()
			y := *siblings[i]
			y.t = t
			y.rescue(doomed[i], s, ids)
		})
	}
}

// sibling is a deployment that reads the same topics into a database of its own, from here on.
func (x *topology) sibling() *topology {
	t := x.t
	t.Helper()
	name := "st_" + randomHex(6)
	sql(t, "CREATE DATABASE "+name+" TEMPLATE "+shared.template)
	t.Cleanup(func() { sql(t, "DROP DATABASE "+name+" WITH (FORCE)") })
	url, err := services.WithDatabase(shared.server, name)
	if err != nil {
		t.Fatal(err)
	}
	y := &topology{t: t, name: name, settings: shared.settings(url), group: name}
	y.open()
	skipBacklog(t, y.settings.KafkaBrokers, y.group)
	return y
}

func (x *topology) rescue(doomed *node, s *shop, ids []string) {
	t := x.t
	t.Helper()
	stalls := strings.HasSuffix(t.Name(), "stop")
	if stalls {
		eventually(t, 60*time.Second, "stop", doomed.stopped)
	} else {
		eventually(t, 60*time.Second, "crash", doomed.dead)
	}
	over := time.After(stall)
	x.relay("RELAY_LEASE=5s")
	x.delivered(t, s, ids, 90*time.Second)
	if !stalls {
		return
	}
	// The one that stood still goes on with what is long done, and changes nothing.
	<-over
	if err := doomed.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := services.Ready(t.Context(), doomed.Process, doomed.admin, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	x.stop(doomed)
	x.delivered(t, s, ids, time.Second)
}
