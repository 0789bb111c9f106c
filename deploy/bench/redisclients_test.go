package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// BenchmarkRedisClients compares the edge's batcher with go-redis' pipelines and rueidis' auto-pipelining:
// the commands that one batch of ten signals sends, from 128 requests at a time. The three take turns; the
// best turn of each counts.
func BenchmarkRedisClients(b *testing.B) {
	rows.begin(b)
	const turns, requests = 3, 20_000
	best := map[string]clientCost{}
	for range turns {
		for name, cost := range edgeClients(b, requests) {
			best[name] = best[name].least(cost)
		}
		best["rueidis"] = best["rueidis"].least(rueidisClient(b, requests))
	}
	for _, name := range []string{"batcher", "go-redis", "rueidis"} {
		c := best[name]
		rows.add("claims of ten signals by %s: %.1f µs of client CPU, %.0f requests/s", name, c.cpu,
			1e9/c.elapsed)
		b.ReportMetric(c.cpu, name+"-cpu-µs/op")
	}
	b.ReportMetric(0, "ns/op")
}

// clientCost is what a request costs: microseconds of the client's processor time, and nanoseconds until the
// next one.
type clientCost struct{ cpu, elapsed float64 }

func (c clientCost) least(other clientCost) clientCost {
	if c == (clientCost{}) {
		return other
	}
	return clientCost{cpu: min(c.cpu, other.cpu), elapsed: min(c.elapsed, other.elapsed)}
}

// edgeClients runs the edge's own benchmark of its batcher and of go-redis.
func edgeClients(b *testing.B, requests int) map[string]clientCost {
	line := regexp.MustCompile(`(?m)^BenchmarkClaims/([a-z-]+?)-?\d*\s+\d+\s+(\S+) ns/op\s+(\S+) cpu-µs/op`)
	text, err := exec.Command("go", "test", "-run", "^$", "-bench", "^BenchmarkClaims$", "-benchtime",
		strconv.Itoa(requests)+"x",
		"storefront.internal/edge/internal/redisbatch").CombinedOutput()
	costs := map[string]clientCost{}
	for _, found := range line.FindAllStringSubmatch(string(text), -1) {
		elapsed, err1 := strconv.ParseFloat(found[2], 64)
		cpu, err2 := strconv.ParseFloat(found[3], 64)
		if err1 == nil && err2 == nil {
			costs[found[1]] = clientCost{cpu: cpu, elapsed: elapsed}
		}
	}
	if err != nil || len(costs) != 2 {
		b.Fatalf("%v: %s", err, text)
	}
	return costs
}

func rueidisClient(b *testing.B, requests int) clientCost {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{os.Getenv("TEST_REDIS_ADDR")},
		DisableCache: true, AlwaysPipelining: true})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	prefix := fmt.Sprintf("bench-%d:", time.Now().UnixNano())
	cpu, began := processorTime(b), time.Now()
	var n atomic.Int64
	var wg sync.WaitGroup
	for range 128 {
		wg.Go(func() {
			for id := n.Add(1); id <= int64(requests); id = n.Add(1) {
				if err := claimByRueidis(client, prefix, id); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return clientCost{cpu: float64((processorTime(b) - cpu).Microseconds()) / float64(requests),
		elapsed: float64(time.Since(began).Nanoseconds()) / float64(requests)}
}

func claimByRueidis(client rueidis.Client, prefix string, id int64) error {
	const holder = "0123456789abcdef-1a:123456789"
	ctx := context.Background()
	commands := make(rueidis.Commands, 0, 11)
	for i := range 10 {
		commands = append(commands, client.B().Set().Key(fmt.Sprintf("%s%d:%d", prefix, id, i)).Value(holder).
			Nx().Get().PxMilliseconds(60_000).Build())
	}
	commands = append(commands, client.B().Pttl().Key(prefix+"epoch").Build())
	for _, reply := range client.DoMulti(ctx, commands...) {
		if err := reply.Error(); err != nil && !rueidis.IsRedisNil(err) {
			return err
		}
	}
	err := client.Do(ctx, client.B().Set().Key(fmt.Sprintf("%s%d", prefix, id)).Value("done").Nx().Get().
		PxMilliseconds(60_000).Build()).Error()
	if rueidis.IsRedisNil(err) {
		return nil
	}
	return err
}

func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
