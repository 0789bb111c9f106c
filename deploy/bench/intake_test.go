package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/bench/limit"
	"storefront.internal/deploy/load"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/shared/stream"
)

const (
	shoppers = 64 // connections of the closed loop
	signals  = 10 // signals in a request
	resent   = 3  // of them, in the case with resent ids
)

// intake is one of the programs that accept the same requests.
type intake struct {
	node
	name                    string
	resend                  int
	rates, cpus, p50s, p99s []float64
	redis, kafka            []float64 // processor time of the stores for one request
}

// backing are the stores that the programs use.
type backing struct {
	redis, kafka int // process ids
	memory       *memory
}

func (s *deployment) backing() backing {
	s.b.Helper()
	return backing{redisPid(s.b, s.Settings.RedisAddr), brokerPid(s.b), newMemory(s.b, s.Settings.RedisAddr)}
}

// noQuota are rate limits that are checked and never reached.
var noQuota = []string{"EDGE_RATE_PER_KEY=100000000", "EDGE_RATE_PER_ADDRESS=100000000",
	"EDGE_RATE_BURST=100000000"}

// BenchmarkIntake compares recording signals with everything on, the bare handler and the straight-line
// program, which take turns: batches of ten signals, 64 connections, closed loop; then the open loop at half
// of the edge's maximum. No relay runs, since the other programs have none.
func BenchmarkIntake(b *testing.B) {
	s := newDeployment(b)
	edge := s.edge(noQuota...)
	who := s.shopper(edge)
	answer := first(b, edge.address, load.NewBatch(who, random(4), time.Now()))
	cases := []*intake{
		{name: "bare handler", node: s.static(answer)},
		{name: "straight line", node: s.limit(limit.StraightLine, limit.Redis+"="+s.Settings.RedisAddr,
			limit.Brokers+"="+s.Settings.KafkaBrokers, limit.Topic+"="+s.topic())},
		{name: "edge", node: edge},
		{name: "edge, 30 % resent", node: edge, resend: resent},
	}
	if base, found := s.baseEdge(noQuota...); found {
		cases = append(cases, &intake{name: "edge of the base", node: base})
	}
	under := s.backing()
	for round := range rounds + 1 {
		for _, c := range cases {
			c.turn(b, who, under, round > 0) // the first one warms
		}
	}
	profile(b, edge, "intake", func() {
		for range 3 { // a profile has a hundred samples a second
			cases[2].turn(b, who, under, false)
		}
	})
	for _, c := range cases {
		c.row(b, cases)
	}
	goals(cases, residentOf(b, edge.Pid()))
	open(b, edge, who, under.memory, median(cases[2].rates)/2)
	b.ReportMetric(0, "ns/op") // one run is one measurement, longer than a benchmark's second
}

// goals adds rows that compare the results with the goals.
func goals(cases []*intake, resident float64) {
	bare, line, edge, resent := cases[0], cases[1], cases[2], cases[3]
	rate := func(c *intake) string { return fmt.Sprintf("%.0f req/s", median(c.rates)) }
	ratio := func(c, d *intake) string { return fmt.Sprintf("%.3f", median(c.rates)/median(d.rates)) }
	rows.goal("recording signals ÷ bare fasthttp handler", rate(edge), rate(bare), ratio(edge, bare),
		"≥ 0.16")
	rows.goal("recording signals ÷ straight-line program", rate(edge), rate(line), ratio(edge, line), "≥ 1.5")
	rows.goal("edge CPU a request of 10 signals", short(median(edge.cpus)).String(),
		short(median(line.cpus)).String()+" (straight line)", "", "≤ 75 µs")
	rows.goal("30 % resent ÷ none", rate(resent), rate(edge), ratio(resent, edge), "≥ 0.9")
	rows.goal("edge memory under full load", fmt.Sprintf("%.0f MiB", resident), "", "", "≤ 80 MiB")
	for _, c := range cases[4:] {
		rows.goal("recording signals ÷ "+c.name, rate(edge), rate(c), ratio(edge, c), "")
		rows.goal("edge CPU a request, "+c.name, short(median(edge.cpus)).String(),
			short(median(c.cpus)).String(), "", "")
	}
}

// row adds the results of one case.
func (c *intake) row(b *testing.B, cases []*intake) {
	rate := median(c.rates)
	bare, line := rate/median(cases[0].rates), rate/median(cases[1].rates)
	rows.add("recording signals, %-18s %8.0f req/s  %5.3f of the bare handler  %5.2f of the straight line "+
		" CPU a request: own %s, Redis %s, Kafka %s  p50 %s  p99 %s",
		c.name, rate, bare, line, short(median(c.cpus)), short(median(c.redis)), short(median(c.kafka)),
		short(median(c.p50s)), short(median(c.p99s)))
	if c.node == cases[2].node && c.resend == 0 {
		b.ReportMetric(bare, "edge/bare")
		b.ReportMetric(line, "edge/straight-line")
		b.ReportMetric(median(c.cpus)/1000, "edge-µs/req")
	}
	if c.resend > 0 {
		b.ReportMetric(rate/median(cases[2].rates), "resent/new")
	}
}

// turn sends for a while and keeps the figures if they count.
func (c *intake) turn(b *testing.B, who load.Shopper, under backing, counts bool) {
	b.Helper()
	under.memory.forget(b)
	own, r, k := c.cpu(b), cpuOf(b, under.redis), cpuOf(b, under.kafka)
	found, err := load.Closed(c.load(who), 2*turn)
	check(b, err)
	if !counts {
		return
	}
	each := func(used time.Duration) float64 { return float64(used) / float64(len(found.Took)) }
	c.rates = append(c.rates, found.Rate())
	c.cpus, c.redis, c.kafka = append(c.cpus, each(c.cpu(b)-own)),
		append(c.redis, each(cpuOf(b, under.redis)-r)), append(c.kafka, each(cpuOf(b, under.kafka)-k))
	c.p50s, c.p99s = append(c.p50s, float64(found.Percentile(50))),
		append(c.p99s, float64(found.Percentile(99)))
}

// load are the requests of a turn; each has new ids, and its response must say which ids are duplicates.
func (c *intake) load(who load.Shopper) load.Case {
	who.Host, who.Resend = c.address, c.resend
	run, now := random(4), time.Now()
	batches := make([]*load.Batch, shoppers)
	for i := range batches {
		batches[i] = load.NewBatch(who, fmt.Sprintf("%s%02d", run, i), now)
	}
	return load.Case{
		Address: c.address, Connections: shoppers,
		Request: func(i int) []byte { return batches[i].Next() },
		Answer: func(i, status int, body []byte) error {
			if status != http.StatusAccepted {
				return fmt.Errorf("%d %s", status, body)
			}
			if n := bytes.Count(body, []byte(`"duplicate"`)); n != batches[i].Duplicates() {
				return fmt.Errorf("%d duplicates were answered, %d were sent", n, batches[i].Duplicates())
			}
			return nil
		},
	}
}

// open sends at a fixed rate and adds how long requests took from the moment when they were due.
func open(b *testing.B, edge node, who load.Shopper, m *memory, rate float64) {
	b.Helper()
	var p50s, p99s []float64
	for round := range rounds {
		m.forget(b)
		c := intake{node: edge}
		found, err := load.Open(c.load(who), rate, 3*turn)
		check(b, err)
		if round > 0 {
			p50s, p99s = append(p50s, float64(found.Percentile(50))),
				append(p99s, float64(found.Percentile(99)))
		}
	}
	rows.goal(fmt.Sprintf("recording signals, open loop at half of the maximum (%.0f req/s)", rate),
		fmt.Sprintf("p50 %s, p99 %s", short(median(p50s)), short(median(p99s))),
		"", "", "p50 ≤ 3 ms, p99 ≤ 10 ms")
	b.ReportMetric(median(p50s)/1e6, "open-p50-ms")
	b.ReportMetric(median(p99s)/1e6, "open-p99-ms")
}

// first sends a request until it is accepted and returns the body of the response.
func first(b *testing.B, address string, batch *load.Batch) []byte {
	b.Helper()
	request := batch.Next()
	status, body, err := load.Once(address, request)
	for range 20 { // as a client does
		if err == nil && status != http.StatusServiceUnavailable {
			break
		}
		time.Sleep(time.Second)
		status, body, err = load.Once(address, request)
	}
	check(b, err)
	if status != http.StatusAccepted || bytes.Count(body, []byte(`"accepted"`)) != signals {
		b.Fatalf("%d %s", status, body)
	}
	return body
}

// topic makes a topic for a program.
func (s *deployment) topic() string {
	s.b.Helper()
	name := s.name + ".line"
	check(s.b, stream.EnsureTopics(context.Background(), strings.Split(s.Settings.KafkaBrokers, ","),
		stream.Security{}, []stream.Topic{{Name: name, Partitions: 4, ReplicationFactor: -1}}))
	return name
}

// shopper makes a connection with a key and a Decision.
func (s *deployment) shopper(edge node) load.Shopper {
	s.b.Helper()
	ctx := context.Background()
	c, err := s.api.CreateConnection(ctx, "bench-"+random(6))
	check(s.b, err)
	key, err := s.api.IssueKey(ctx, c.ConnectionID)
	check(s.b, err)
	who := load.Shopper{Host: edge.address, Connection: c.ConnectionID, Key: key.Secret,
		Item: "itm_5f1c9a7b3d2e4f600001", Signals: signals}
	d, err := client.Storefront{BaseURL: edge.URL, ConnectionID: c.ConnectionID,
		Key: key.Secret}.Recommend(ctx, nil)
	check(s.b, err)
	who.Decision = d.ID
	// the first request of an edge opens connections
	first(s.b, edge.address, load.NewBatch(who, random(4), time.Now()))
	return who
}
