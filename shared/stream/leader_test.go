package stream

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/segmentio/kafka-go"
)

// twelve partitions of three brokers, as a topic has them.
func threeBrokers() *fakeCluster { return newFakeCluster(0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2) }

func closeProducer(t *testing.T, p *Producer) {
	t.Helper()
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestOneOfThreeLeadersHangs: a broker that takes requests and answers none, or whose connections hang,
// delays the records that it gets at first, and no others. No call fails.
func TestOneOfThreeLeadersHangs(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]func(*fakeCluster){
		"requests":    func(c *fakeCluster) { c.hangs[1] = true },
		"connections": func(c *fakeCluster) { c.connects[1] = true },
	} {
		synctest.Test(t, func(t *testing.T) {
			cluster := threeBrokers()
			p := cluster.producer(ProducerConfig{})
			calls := startCallers(p, 16)
			calls.during(time.Second)
			before := calls.during(time.Second)
			cluster.set(func() { hang(cluster) })
			var after []int
			for range 8 {
				after = append(after, 100*calls.during(time.Second)/before)
			}
			longest, failed := calls.soFar()
			t.Logf("%s hang: %d acknowledged a second before, then in %% of that %v; longest call %s", name,
				before, after, longest)
			for i, share := range after {
				if share < 60 || i >= 1 && share < 90 {
					t.Errorf("%s hang: %d %% in second %d", name, share, i+1)
				}
			}
			if longest > 2*slowAfter || failed > 0 {
				t.Errorf("%s hang: longest call %s, %d failed", name, longest, failed)
			}
			cluster.set(func() { clear(cluster.hangs); clear(cluster.connects); clear(cluster.flushes) })
			calls.during(4 * maxLeaderOpen)
			calls.end()
			closeProducer(t, p)
			if cluster.flushes[1] < cluster.flushes[0]/4 {
				t.Errorf("%s hang: after the end the brokers get %v flushes", name, cluster.flushes)
			}
			for value, n := range cluster.stored {
				if n != 1 { // what hung is not stored in this cluster
					t.Errorf("%s hang: %s is stored %d times", name, value, n)
				}
			}
		})
	}
}

// TestHangingLeaderIsProbedWithOneRecord: a leader that does not answer gets one record every few seconds.
func TestHangingLeaderIsProbedWithOneRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster := threeBrokers()
		registry := prometheus.NewRegistry()
		p := cluster.producer(ProducerConfig{Registerer: registry})
		calls := startCallers(p, 4)
		calls.during(time.Second)
		cluster.set(func() { cluster.hangs[1] = true })
		calls.during(10 * time.Second)
		if n := testutil.ToFloat64(p.metrics.unreachable); n != 1 {
			t.Errorf("%v leaders are unreachable", n)
		}
		cluster.set(func() { clear(cluster.flushes); clear(cluster.largest) })
		calls.during(time.Minute)
		cluster.set(func() {
			if n := cluster.flushes[1]; n < 10 || n > 30 || cluster.largest[1] != 1 {
				t.Errorf("%d probes in a minute, the largest has %d records", n, cluster.largest[1])
			}
			clear(cluster.hangs)
		})
		calls.during(4 * maxLeaderOpen)
		if n := testutil.ToFloat64(p.metrics.unreachable); n != 0 {
			t.Errorf("%v leaders are unreachable after the end", n)
		}
		calls.end()
		closeProducer(t, p)
	})
}

// TestAllLeadersHang: once it is known that no leader answers, or that no leader's replicas acknowledge,
// records are refused at once, and after the end the next probe lets them pass again.
func TestAllLeadersHang(t *testing.T) {
	t.Parallel()
	for brokers, leaders := range map[int][]int{1: {0}, 3: {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}} {
		for _, timesOut := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d brokers, times out %t", brokers, timesOut), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					testAllLeadersHang(t, newFakeCluster(leaders...), brokers, timesOut)
				})
			})
		}
	}
}

func testAllLeadersHang(t *testing.T, cluster *fakeCluster, brokers int, timesOut bool) {
	t.Helper()
	p := cluster.producer(ProducerConfig{})
	calls := startCallers(p, 8)
	calls.during(time.Second)
	cluster.set(func() {
		cluster.timesOut = timesOut
		for i := range brokers {
			cluster.hangs[i] = !timesOut
		}
	})
	calls.during(10 * time.Second)
	slow := 0
	for range 1000 {
		if o, err := p.Produce(t.Context(), []byte("late")); o != Refused || !errors.Is(err, ErrUnreachable) {
			slow++ // a probe
		}
		time.Sleep(10 * time.Millisecond)
	}
	if slow > 10*brokers {
		t.Errorf("%d of 1000 calls were not refused at once", slow)
	}
	cluster.set(func() {
		clear(cluster.hangs)
		cluster.timesOut = false
	})
	calls.during(maxLeaderOpen + 2*time.Second)
	_, before := calls.soFar()
	n := calls.during(time.Second)
	if _, failed := calls.soFar(); n == 0 || failed > before {
		t.Errorf("after the end %d acknowledged, %d failed", n, failed-before)
	}
	calls.end()
	closeProducer(t, p)
}

// TestMovedPartitionsAreUsed: partitions of a broker that is gone are left out while they have no leader, and
// used when they have a new one.
func TestMovedPartitionsAreUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster := threeBrokers()
		p := cluster.producer(ProducerConfig{})
		calls := startCallers(p, 8)
		calls.during(time.Second)
		cluster.set(func() {
			cluster.leaders = []int{0, noLeader, 2, 0, noLeader, 2, 0, noLeader, 2, 0, noLeader, 2}
		})
		calls.during(2 * partitionsTTL)
		cluster.set(func() { clear(cluster.asked) })
		calls.during(10 * time.Second)
		cluster.set(func() {
			if n := cluster.asked[noLeader]; n > 0 {
				t.Errorf("%d flushes to partitions without a leader", n)
			}
			cluster.leaders = []int{0, 0, 2, 0, 0, 2, 0, 0, 2, 0, 0, 2}
		})
		calls.during(2 * partitionsTTL)
		cluster.set(func() { clear(cluster.flushes) })
		calls.during(time.Second)
		calls.end()
		closeProducer(t, p)
		if got := cluster.flushes; got[0] < got[2]*3/2 {
			t.Errorf("flushes %v, want twice as many at the leader of eight", got)
		}
	})
}

// TestFirstLookupMayFail: the first record waits for the partitions, but not for longer than an attempt; then
// they are known to be unavailable, and records are refused at once.
func TestFirstLookupMayFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster := threeBrokers()
		cluster.unknown = errors.New("connection refused")
		p := cluster.producer(ProducerConfig{})
		time.AfterFunc(time.Second, func() { cluster.set(func() { cluster.unknown = nil }) })
		if o, err := p.Produce(t.Context(), []byte("first")); o != Acknowledged {
			t.Errorf("partitions that are known after a second: %s %v", o, err)
		}
		closeProducer(t, p)

		cluster.unknown = kafka.LeaderNotAvailable
		p = cluster.producer(ProducerConfig{})
		for _, most := range []time.Duration{2 * time.Second, 0} {
			begun := time.Now()
			o, err := p.Produce(t.Context(), []byte("first"))
			if took := time.Since(begun); o != Refused || !errors.Is(err, cluster.unknown) || took > most {
				t.Errorf("partitions that are not known: %s %v after %s", o, err, took)
			}
		}
		cluster.unknown = nil
		if o, err := p.Produce(t.Context(), []byte("second")); o != Acknowledged {
			t.Errorf("partitions that are known at last: %s %v", o, err)
		}
		closeProducer(t, p)
	})
}

// TestWarm: after Warm no record waits for a look-up or a connection, and a leader that did not answer gets
// none.
func TestWarm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster := threeBrokers()
		cluster.hangs[1] = true
		cluster.unknown = errors.New("not yet")
		p := cluster.producer(ProducerConfig{})
		time.AfterFunc(time.Second, func() { cluster.set(func() { cluster.unknown = nil }) })
		if err := p.Warm(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a leader hangs: %v", err)
		}
		for broker := range 3 {
			if cluster.asked[broker] != 1 {
				t.Errorf("requests by broker %v", cluster.asked)
			}
		}
		for range 12 {
			begun := time.Now()
			if o, err := p.Produce(t.Context(), []byte("x")); o != Acknowledged ||
				time.Since(begun) > clusterLatency {
				t.Errorf("%s %v after %s", o, err, time.Since(begun))
			}
		}
		cluster.unknown = errors.New("never")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		cold := cluster.producer(ProducerConfig{})
		err := cold.Warm(ctx)
		if !errors.Is(err, cluster.unknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("no partitions: %v", err)
		}
		closeProducer(t, p)
		closeProducer(t, cold)
	})
}
