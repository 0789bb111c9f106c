package redisbatch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// BenchmarkClaims compares ways to send what one batch of ten signals sends: ten SET with NX and GET and one
// PTTL together, then one SET. deploy/bench runs it beside the same work with rueidis.
func BenchmarkClaims(b *testing.B) {
	client, prefix := open(b)
	batcher := newTestBatcher(b, client, 2)
	holder := "0123456789abcdef-1a:123456789"
	b.Run("batcher", func(b *testing.B) {
		concurrently(b, prefix, func(ctx context.Context, names []string, attempt string) error {
			claims := make([][]string, 0, len(names)+1)
			for _, name := range names {
				claims = append(claims, []string{"set", name, holder, "px", "60000", "nx", "get"})
			}
			if err := do(ctx, batcher, append(claims, []string{"pttl", prefix + "epoch"})...); err != nil {
				return err
			}
			return do(ctx, batcher, []string{"set", attempt, "done", "px", "60000", "nx", "get"})
		})
	})
	b.Run("go-redis", func(b *testing.B) {
		concurrently(b, prefix, func(ctx context.Context, names []string, attempt string) error {
			pipe := client.Pipeline()
			for _, name := range names {
				pipe.SetArgs(ctx, name, holder, goredis.SetArgs{Mode: "NX", Get: true, TTL: time.Minute})
			}
			pipe.PTTL(ctx, prefix+"epoch")
			if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
				return err
			}
			err := client.SetArgs(ctx, attempt, "done",
				goredis.SetArgs{Mode: "NX", Get: true, TTL: time.Minute}).Err()
			if err == goredis.Nil { //nolint:errorlint // as go-redis returns it
				return nil
			}
			return err
		})
	})
}

// concurrently runs 64 requests for each processor at a time, and reports the processor time of this process.
func concurrently(b *testing.B, prefix string,
	request func(ctx context.Context, names []string, attempt string) error) {
	var n atomic.Int64
	began := cpu(b)
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			id := n.Add(1)
			names := make([]string, 10)
			for i := range names {
				names[i] = fmt.Sprintf("%s%s:%d:%d", prefix, b.Name(), id, i)
			}
			if err := request(context.Background(), names,
				fmt.Sprintf("%s%s:%d", prefix, b.Name(), id)); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64((cpu(b)-began).Microseconds())/float64(b.N), "cpu-µs/op")
}

func cpu(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
