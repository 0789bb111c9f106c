package systemtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"storefront.internal/deploy/local/kafka"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/deploy/stack/link"
)

// Of three brokers, one becomes unreachable for the edge: what is sent to it arrives nowhere, and no
// connection is closed. The two others take what it would have got. In the end each accepted signal is stored
// once.
// Three brokers are slow on a small machine, so only `make soak` runs this.
func TestOneBrokerOfThreeIsBlackHoled(t *testing.T) {
	if !soaking() {
		t.Skip("played by make soak")
	}
	c := startLinkedCluster(t)
	x := newDeployment(t, func(s *stack.Settings) { s.KafkaBrokers = c.Addrs() })
	edge := x.edge("EDGE_KAFKA_TOPIC_PARTITIONS=6", "EDGE_KAFKA_BROKERS="+c.linked())
	x.relay()
	s := x.newStorefront()
	awaitReplicated(t, c.Addrs())
	load := startSteadyLoad(t, s, edge, s.recommend(edge))
	load.during(3 * time.Second)
	before := load.during(5*time.Second) / 5

	check(t, c.links[leader(t, c.Addrs())].Stall())
	var hung []int
	for range 18 {
		hung = append(hung, load.during(time.Second))
	}
	for _, l := range c.links {
		check(t, l.Heal())
	}
	load.during(5 * time.Second)
	after := load.during(5*time.Second) / 5
	ids, refused, longest := load.end()
	t.Logf("accepted a second: %d before, with one black-holed broker %v, %d after; "+
		"%d answers of 503, longest request %s", before, hung, after, refused, longest)
	normal := min(before, after) // the machine may be busier than before
	if third := hung[2]; third < normal*60/100 {
		t.Errorf("%d in the third second of %d", third, normal)
	}
	if later := (hung[14] + hung[15] + hung[16]) / 3; later < normal*90/100 {
		t.Errorf("%d after 15 seconds of %d", later, normal)
	}
	x.awaitAllStored(t, s, ids, ids)
}

// linkedCluster is a cluster of three brokers with a link before each, which an edge may use.
type linkedCluster struct {
	*kafka.Cluster
	links []*link.Link
}

func startLinkedCluster(t *testing.T) *linkedCluster {
	t.Helper()
	ctx := context.Background()
	libs, err := kafka.Fetch(ctx, filepath.Join(shared.project.Cache(), "kafka"))
	unavailable(t, err)
	c := &linkedCluster{}
	var configs []kafka.Config
	dir := t.TempDir()
	for i := range 3 {
		p := port(t)
		l := openLink(t, project.Loopback(p))
		c.links = append(c.links, l)
		configs = append(configs, kafka.Config{Libs: libs, Dir: folder(t, dir, fmt.Sprint("kafka-", i)),
			Port: port(t), ControllerPort: port(t), Log: io.Discard,
			Listeners: []kafka.Listener{{Name: "LINKED", Port: p, Advertised: l.Addr()}}})
	}
	c.Cluster, err = kafka.StartCluster(ctx, configs)
	check(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// linked is where the links listen, separated by commas.
func (c *linkedCluster) linked() string {
	var all []string
	for _, l := range c.links {
		all = append(all, l.Addr())
	}
	return strings.Join(all, ",")
}

// steadyLoad are clients that each send a batch of one new signal, wait a little, and send the next. That is
// far below what the machine can do, so that a lower rate means a longer wait.
type steadyLoad struct {
	accepted, refused atomic.Int64
	over              chan struct{}
	all               sync.WaitGroup

	mu      sync.Mutex
	ids     []string // of accepted signals
	longest time.Duration
}

func startSteadyLoad(t *testing.T, s *storefront, edge *stack.Process, d client.Decision) *steadyLoad {
	l := &steadyLoad{over: make(chan struct{})}
	for range 16 {
		l.all.Go(func() {
			for {
				select {
				case <-l.over:
					return
				case <-time.After(20 * time.Millisecond):
					l.send(t, s, edge, cartBatch(d, 1))
				}
			}
		})
	}
	return l
}

// send sends a batch until it is accepted.
func (l *steadyLoad) send(t *testing.T, s *storefront, edge *stack.Process, batch []client.Signal) {
	for {
		a, err := s.send(edge, batch, 10*time.Second)
		l.mu.Lock()
		l.longest = max(l.longest, a.Took)
		l.mu.Unlock()
		switch {
		case err == nil && a.Status == http.StatusServiceUnavailable:
			l.refused.Add(1)
			time.Sleep(200 * time.Millisecond)
			continue
		case err != nil || a.Status != http.StatusAccepted || len(a.Results) != 1:
			t.Errorf("answer %+v %v", a, err)
			return
		}
		l.accepted.Add(1)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ids = append(l.ids, idsOf(batch)...)
		return
	}
}

// during counts what is accepted during a time.
func (l *steadyLoad) during(d time.Duration) int {
	before := l.accepted.Load()
	time.Sleep(d)
	return int(l.accepted.Load() - before)
}

func (l *steadyLoad) end() (ids []string, refused int64, longest time.Duration) {
	close(l.over)
	l.all.Wait()
	return slices.Clone(l.ids), l.refused.Load(), l.longest
}
