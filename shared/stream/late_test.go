package stream

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestAllLeadersAnswerLate: when no leader answers sooner, the producer waits, also for a new connection, which
// costs an answer more. Callers get their acknowledgements, and no record is sent twice.
func TestAllLeadersAnswerLate(t *testing.T) {
	t.Parallel()
	for brokers, leaders := range map[int][]int{1: {0, 0, 0, 0, 0, 0}, 3: {0, 1, 2, 0, 1, 2}} {
		for _, warm := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				cluster := newFakeCluster(leaders...)
				cluster.handshakes = true
				p := cluster.producer(ProducerConfig{})
				late := func() { cluster.late = func(int) time.Duration { return time.Second } }
				calls := startCallers(p, 0)
				if warm {
					calls = startCallers(p, 30)
					calls.during(time.Second)
					cluster.set(late)
				} else {
					late()
					calls = startCallers(p, 30)
				}
				acked := calls.during(30 * time.Second)
				longest, failed := calls.soFar()
				calls.end()
				closeProducer(t, p)
				twice, all := cluster.twice()
				t.Logf("%d brokers, warm %t: %d acknowledged, %d failed, longest call %s; %d of %d are twice",
					brokers, warm, acked, failed, longest, twice, all)
				if failed > 0 || acked < 30*30/4 || twice > resendBurst {
					t.Errorf("%d brokers: %d acknowledged, %d failed", brokers, acked, failed)
				}
			})
		}
	}
}

// TestResendsAreBounded: brokers that often answer late, whichever it is, make few records twice.
func TestResendsAreBounded(t *testing.T) {
	t.Parallel()
	for name, isLate := range map[string]func(random *rand.Rand, broker int, at time.Duration) bool{
		"one flush of ten": func(random *rand.Rand, _ int, _ time.Duration) bool {
			return random.IntN(10) == 0
		},
		"all, 2 s of 10": func(_ *rand.Rand, _ int, at time.Duration) bool {
			return at%(10*time.Second) < 2*time.Second
		},
		"one of three, 5 s of 10": func(_ *rand.Rand, broker int, at time.Duration) bool {
			return broker == 1 && at%(10*time.Second) < 5*time.Second
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			cluster, random, began := threeBrokers(), rand.New(rand.NewPCG(1, 2)), time.Now()
			cluster.late = func(broker int) time.Duration {
				if isLate(random, broker, time.Since(began)) {
					return 300*time.Millisecond + rand.N(300*time.Millisecond)
				}
				return clusterLatency + rand.N(20*time.Millisecond)
			}
			registry := prometheus.NewRegistry()
			p := cluster.producer(ProducerConfig{Registerer: registry})
			calls := startCallers(p, 16)
			calls.during(time.Minute)
			longest, failed := calls.soFar()
			calls.end()
			closeProducer(t, p)
			twice, all := cluster.twice()
			t.Logf("late are %s: %d of %d are twice (%.1f %%), longest call %s", name, twice, all,
				100*float64(twice)/float64(all), longest)
			if most := resendBurst + int(resendShare*float64(all)); twice > most || failed > 0 {
				t.Errorf("late are %s: %d are twice, at most %d may be; %d failed", name, twice, most, failed)
			}
			if counted := testutil.ToFloat64(p.metrics.resentLate); int(counted) != twice {
				t.Errorf("late are %s: %v were resent, %d are twice", name, counted, twice)
			}
		})
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
		if n := calls.during(time.Minute) / 60; n < before*90/100 {
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

// TestShortHangMakesNothingTwice: records of a broker that hangs for less than a request's time are waited for,
// since there is no other.
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

// TestLostRequestIsResent: a request that stays without an answer while the leader answers later ones is lost,
// with its connection for example, and its records are sent again, also to the same leader.
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
		calls := startCallers(p, 2)
		calls.during(5 * time.Second)
		longest, failed := calls.soFar()
		calls.end()
		closeProducer(t, p)
		if failed > 0 || longest < p.cfg.HungAfter || longest > p.cfg.HungAfter+time.Second {
			t.Errorf("%d failed, longest call %s", failed, longest)
		}
	})
}
