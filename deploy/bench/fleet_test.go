package bench

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/segmentio/kafka-go"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/stream"
)

const (
	fleetSignals = 40_000 // in one measurement of the sink
	inRecord     = 10     // signals of a record
	steadyRate   = 2000   // signals/s
	steadyFor    = 15 * time.Second
	steadyTick   = 10 * time.Millisecond
)

// BenchmarkSinkOfConnections is the way from Kafka into PostgreSQL by one relay, for records of ten signals
// of ten connections and of 10,000. The cases take turns. The records are written without an edge.
func BenchmarkSinkOfConnections(b *testing.B) {
	s, cases := newFleet(b)
	var rates, costs [2][]float64
	for round := range rounds + 1 {
		for i, who := range cases {
			s.produce(b, fleetRecords(who, fmt.Sprintf("%s_%d", random(3), i)))
			before := s.postgresCPU()
			rate, relay := s.sink(b, fleetSignals)
			used := s.postgresCPU() - before
			stop(b, relay)
			if round > 0 { // the first one fills the caches
				rates[i] = append(rates[i], rate)
				costs[i] = append(costs[i], used.Seconds()*1e6/fleetSignals)
			}
		}
	}
	few, many := median(rates[0]), median(rates[1])
	rows.goal("sink, 10,000 connections ÷ ten", fmt.Sprintf("%.0f/s", many), fmt.Sprintf("%.0f/s", few),
		fmt.Sprintf("%.2f", many/few), "≥ 0.75")
	rows.goal("PostgreSQL's processor time for a signal of the sink, 10,000 connections ÷ ten",
		fmt.Sprintf("%.1f µs", median(costs[1])), fmt.Sprintf("%.1f µs", median(costs[0])),
		fmt.Sprintf("%.2f", median(costs[1])/median(costs[0])), "≤ 1.3")
	b.ReportMetric(many/few, "10000/10")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSteadySignals is a steady stream of single signals through sink and delivery by one relay: spread
// over 10,000 connections with a Zipf tail, or over ten.
func BenchmarkSteadySignals(b *testing.B) {
	s, cases := newFleet(b)
	watch := &stopwatch{sent: map[string]time.Time{}}
	engine := newEngine(b, s.Settings.EngineToken)
	engine.arrived = watch.arrive
	s.Settings.EngineURL, s.Settings.EngineSecret = engine.url, s.Settings.EngineToken
	relay := s.relay()
	var p99s [2]time.Duration
	var costs [2]time.Duration
	for round := range 2 {
		for i, who := range cases {
			watch.took = nil
			used, before := relay.cpu(b)+s.postgresCPU(), engine.got.Load()
			sent := s.steady(b, who, watch)
			engine.awaits(b, before+int64(sent))
			if round == 0 { // the first one makes the lanes
				continue
			}
			costs[i] = (relay.cpu(b) + s.postgresCPU() - used) / time.Duration(sent)
			slices.Sort(watch.took)
			p99s[i] = watch.took[len(watch.took)*99/100]
		}
	}
	ratio := float64(costs[1]) / float64(costs[0])
	rows.goal("2,000 signals/s over 10,000 connections, sent → at the engine",
		"p99 "+p99s[1].Round(time.Millisecond).String(), "", "", "p99 ≤ 1 s")
	rows.goal("their processor time in relay and PostgreSQL ÷ of ten connections", costs[1].String(),
		costs[0].String(), fmt.Sprintf("%.2f", ratio), "≤ 1.5")
	b.ReportMetric(float64(p99s[1].Milliseconds()), "p99-ms")
	b.ReportMetric(ratio, "cost-10000/10")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkQueueViewOfConnections is the queue view while one interaction waits for each of 10,000
// connections.
func BenchmarkQueueViewOfConnections(b *testing.B) {
	s := newDeployment(b)
	s.run(b, fillConnections, manyConnections)
	s.run(b, fillQueue, manyConnections, manyConnections)
	s.run(b, fillLanes)
	s.run(b, fillCounts)
	s.run(b, `ANALYZE`)
	relay := s.relay()
	for s.number(`SELECT count(*) FROM delivery.lanes WHERE oldest_at = '-infinity'`) > 0 {
		time.Sleep(100 * time.Millisecond) // without a limit: the benchmark has one
	}
	took := make([]time.Duration, views)
	for i := range took {
		took[i] = s.view(b)
	}
	stop(b, relay)
	slices.Sort(took)
	p99 := took[views*99/100]
	rows.goal("the queue view, one waits for each of 10,000 connections",
		fmt.Sprintf("p50 %s, p99 %s", took[views/2].Round(100*time.Microsecond),
			p99.Round(100*time.Microsecond)), "", "", "p99 ≤ 50 ms")
	b.ReportMetric(float64(p99.Microseconds())/1000, "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// newFleet is a deployment with ten connections and with 10,000, whose Decisions are stored.
func newFleet(b *testing.B) (s *deployment, cases [2][]tenant) {
	b.Helper()
	s = newDeployment(b)
	stop(b, s.relay()) // makes the partitions of Decisions
	pool, err := pgxpool.New(b.Context(), s.Settings.Database)
	check(b, err)
	b.Cleanup(pool.Close)
	cases[0] = s.waitingTenants(b, pool, fewConnections)
	cases[1] = s.waitingTenants(b, pool, manyConnections)
	return s, cases
}

// record is a record of clicks, as an edge writes it.
func (t tenant) record(run string, first, n int) []byte {
	now := time.Now().UTC().Truncate(time.Microsecond)
	r := signal.Record{RecordID: random(16), ConnectionID: t.connection, StoreID: "str_1",
		ReceivedAt: now, Audit: signal.Audit{IP: "203.0.113.9", UserAgent: "Mozilla/5.0"}}
	for i := range n {
		position := int32(i)
		r.Signals = append(r.Signals, signal.Recorded{Index: i, Signal: signal.Signal{
			ID: ident.SignalID(fmt.Sprintf("sig_%s_%07d", run, first+i)), Type: signal.Click, OccurredAt: now,
			DecisionID: ident.DecisionID(t.decision), ItemID: "itm_5f1c9a7b3d2e4f600001", Position: &position,
			Visitor: &signal.Visitor{VisitorID: "vis_0123456789abcdef", SessionID: "ses_0123456789abcdef"},
		}})
	}
	return signal.AppendRecord(nil, &r)
}

// fleetRecords are records of the connections in turn.
func fleetRecords(who []tenant, run string) (all []kafka.Message) {
	for i := range fleetSignals / inRecord {
		all = append(all, kafka.Message{Value: who[i%len(who)].record(run, i*inRecord, inRecord)})
	}
	return all
}

// writer writes to the topic of signals.
func (s *deployment) writer(b *testing.B) *kafka.Writer {
	b.Helper()
	w := &kafka.Writer{Addr: kafka.TCP(strings.Split(s.Settings.KafkaBrokers, ",")...),
		Topic: stream.TopicSignals, RequiredAcks: kafka.RequireAll, BatchTimeout: time.Millisecond}
	b.Cleanup(func() { check(b, w.Close()) })
	return w
}

func (s *deployment) produce(b *testing.B, records []kafka.Message) {
	b.Helper()
	check(b, s.writer(b).WriteMessages(b.Context(), records...))
}

// steady writes single signals at the steady rate and returns how many. One connection in two is drawn by
// Zipf's law, the others evenly.
func (s *deployment) steady(b *testing.B, who []tenant, watch *stopwatch) (sent int) {
	b.Helper()
	const perTick = int(steadyRate * steadyTick / time.Second)
	source := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(source, 1.1, 1, uint64(len(who)-1))
	w, run := s.writer(b), random(4)
	tick := time.NewTicker(steadyTick)
	defer tick.Stop()
	for begun := time.Now(); time.Since(begun) < steadyFor; <-tick.C {
		messages := make([]kafka.Message, perTick)
		for i := range messages {
			t := who[source.IntN(len(who))]
			if i%2 == 0 {
				t = who[zipf.Uint64()]
			}
			messages[i].Value = t.record(run, sent, 1)
			watch.send(fmt.Sprintf("sig_%s_%07d", run, sent))
			sent++
		}
		check(b, w.WriteMessages(b.Context(), messages...))
	}
	return sent
}

// postgresCPU is the processor time of the server: of its processes, and of those that have ended.
func (s *deployment) postgresCPU() (used time.Duration) {
	s.b.Helper()
	backend, err := statOf(s.number(`SELECT pg_backend_pid()`))
	check(s.b, err)
	server := backend[1]
	found, err := filepath.Glob("/proc/[0-9]*/stat")
	check(s.b, err)
	for _, path := range found {
		pid := filepath.Base(filepath.Dir(path))
		n, err := strconv.Atoi(pid)
		check(s.b, err)
		fields, err := statOf(n)
		if err != nil || pid != server && fields[1] != server {
			continue
		}
		last := 13
		if pid == server {
			last = 15 // with its children that have ended
		}
		for _, field := range fields[11:last] {
			ticks, err := strconv.Atoi(field)
			check(s.b, err)
			used += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return used
}
