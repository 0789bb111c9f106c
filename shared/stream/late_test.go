package stream

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestAllLeadersAnswerLate: when no leader answers sooner, the producer waits, also for a new connection,
// which costs an answer more. Callers get their acknowledgements, and no record is sent twice.
func TestAllLeadersAnswerLate(t *testing.T) {
	t.Parallel()
	for brokers, leaders := range map[int][]int{1: {0, 0, 0, 0, 0, 0}, 3: {0, 1, 2, 0, 1, 2}} {
		for _, warm := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d brokers, connected %t", brokers, warm), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { testLate(t, newFakeCluster(leaders...), warm) })
			})
		}
	}
}

func testLate(t *testing.T, cluster *fakeCluster, connected bool) {
	t.Helper()
	cluster.handshakes = true
	p := cluster.producer(ProducerConfig{})
	if connected {
		if err := p.Warm(t.Context()); err != nil {
			t.Error(err)
		}
	}
	cluster.set(func() { cluster.late = func(int) time.Duration { return time.Second } })
	calls := startCallers(p, 30)
	acked := calls.during(30 * time.Second)
	longest, failed := calls.soFar()
	calls.end()
	closeProducer(t, p)
	twice, all := cluster.twice()
	t.Logf("%d acknowledged, %d failed, longest call %s; %d of %d are twice", acked, failed, longest, twice,
		all)
	if failed > 0 || acked < 30*30/4 || twice > resendBurst {
		t.Errorf("%d acknowledged, %d failed, %d are twice", acked, failed, twice)
	}
}

// isLate reports whether a broker answers a flush late.
type isLate func(random *rand.Rand, broker int, at time.Duration) bool

// TestResendsAreBounded: brokers that often answer late, whichever it is, make few records twice.
func TestResendsAreBounded(t *testing.T) {
	t.Parallel()
	for name, is := range map[string]isLate{
		"one flush of ten": func(random *rand.Rand, _ int, _ time.Duration) bool {
			return random.IntN(10) == 0
		},
		"all in 2 s of 10": func(_ *rand.Rand, _ int, at time.Duration) bool {
			return at%(10*time.Second) < 2*time.Second
		},
		"one of three in 5 s of 10": func(_ *rand.Rand, broker int, at time.Duration) bool {
			return broker == 1 && at%(10*time.Second) < 5*time.Second
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { testResends(t, is) })
		})
	}
}

func testResends(t *testing.T, is isLate) {
	t.Helper()
	cluster, random, began := threeBrokers(), rand.New(rand.NewPCG(1, 2)), time.Now()
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(random.Int64N(int64(most-least)))
	}
	cluster.late = func(broker int) time.Duration {
		if is(random, broker, time.Since(began)) {
			return between(300*time.Millisecond, 600*time.Millisecond)
		}
		return between(clusterLatency, 5*clusterLatency)
	}
	p := cluster.producer(ProducerConfig{})
	calls := startCallers(p, 16)
	calls.during(time.Minute)
	longest, failed := calls.soFar()
	calls.end()
	closeProducer(t, p)
	twice, all := cluster.twice()
	t.Logf("%d of %d are twice (%.1f %%), longest call %s", twice, all, 100*float64(twice)/float64(all),
		longest)
	const overdraw = 16 // a flush has at most as many records as there are callers
	if most := resendBurst + int(resendShare*float64(all)) + overdraw; twice > most || failed > 0 {
		t.Errorf("%d are twice, at most %d may be; %d failed", twice, most, failed)
	}
	if counted := testutil.ToFloat64(p.metrics.resentLate); int(counted) != twice {
		t.Errorf("%v were counted, %d are twice", counted, twice)
	}
}

// TestLaggingLeaderIsLeftOut: a leader that answers much later than the others gets one record every few
// seconds, and its share again when it answers as they do.
func TestLaggingLeaderIsLeftOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster := threeBrokers()
		p := cluster.producer(ProducerConfig{})
		calls := startCallers(p, 16)
		calls.during(time.Second)
		before := calls.during(time.Second)
		cluster.set(func() {
			cluster.late = func(broker int) time.Duration {
				if broker == 1 {
					return time.Second
				}
				return clusterLatency
			}
		})
		calls.during(15 * time.Second)
		cluster.set(func() { clear(cluster.flushes); clear(cluster.largest) })
		n := calls.during(time.Minute) / 60
		t.Logf("%d acknowledged a second of %d", n, before)
		if n < before*90/100 {
			t.Errorf("%d acknowledged a second of %d", n, before)
		}
		cluster.set(func() {
			if n := cluster.flushes[1]; n < 10 || n > 30 || cluster.largest[1] != 1 {
				t.Errorf("%d probes in a minute, the largest has %d records", n, cluster.largest[1])
			}
			cluster.late = nil
		})
		calls.during(2 * lagProbeEvery)
		cluster.set(func() { clear(cluster.flushes) })
		calls.during(time.Second)
		calls.end()
		closeProducer(t, p)
		if cluster.flushes[1] < cluster.flushes[0]/2 {
			t.Errorf("after the end the brokers get %v flushes", cluster.flushes)
		}
	})
}

// TestShortHangMakesNothingTwice: records of a broker that hangs for less than a request's time are waited
// for, since there is no other.
func TestShortHangMakesNothingTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster := newFakeCluster(0, 0)
		p := cluster.producer(ProducerConfig{})
		resumed := time.Now().Add(3 * time.Second)
		cluster.late = func(int) time.Duration { return max(time.Until(resumed), clusterLatency) }
		if o, err := p.Produce(t.Context(), []byte("x")); o != Acknowledged {
			t.Errorf("%s %v", o, err)
		}
		closeProducer(t, p)
		if cluster.stored["x"] != 1 {
			t.Errorf("stored %d times", cluster.stored["x"])
		}
	})
}

// TestLostRequestIsResent: a request that stays without an answer while the leader answers later ones is
// lost, with its connection for example, and its records are sent again, also to the same leader.
func TestLostRequestIsResent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster := newFakeCluster(0, 0)
		p := cluster.producer(ProducerConfig{})
		n := 0
		cluster.late = func(int) time.Duration {
			if n++; n == 1 {
				return time.Hour
			}
			return clusterLatency
		}
		calls := startCallers(p, 1)
		synctest.Wait() // the first request is the lost one
		others := startCallers(p, 1)
		calls.during(5 * time.Second)
		longest, failed := calls.soFar()
		calls.end()
		others.end()
		closeProducer(t, p)
		if failed > 0 || longest < p.cfg.HungAfter || longest > p.cfg.HungAfter+time.Second {
			t.Errorf("%d failed, longest call %s", failed, longest)
		}
	})
}
