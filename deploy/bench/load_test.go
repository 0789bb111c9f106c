package bench

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// elapsed runs n pieces of work on so many senders and returns the seconds that it took.
func elapsed(b *testing.B, senders, n int, work func(i int) error) float64 {
	b.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	begun := time.Now()
	for range senders {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := work(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if b.Failed() {
		b.FailNow()
	}
	return time.Since(begun).Seconds()
}

// ask prepares the request for an item.
func ask(r *fasthttp.Request, address, key, item string) {
	r.SetRequestURI("http://" + address + "/v1/catalog/items/" + item)
	r.Header.Set("Authorization", "Bearer "+key)
}

// get makes a request and returns how long it took.
func get(c *fasthttp.Client, r *fasthttp.Request, res *fasthttp.Response) (time.Duration, error) {
	begun := time.Now()
	if err := c.DoTimeout(r, res, 10*time.Second); err != nil {
		return 0, err
	}
	if res.StatusCode() != fasthttp.StatusOK {
		return 0, fmt.Errorf("%s: %d %s", r.URI(), res.StatusCode(), res.Body())
	}
	return time.Since(begun), nil
}

// turn reads from the source for a while, item after item, and keeps the figures if they count.
func (s *source) turn(b *testing.B, key string, counts bool) {
	b.Helper()
	c := &fasthttp.Client{MaxConnsPerHost: readers}
	defer c.CloseIdleConnections()
	var next atomic.Int64
	took := make([][]float64, readers)
	begun, used := time.Now(), s.cpu(b)
	var all sync.WaitGroup
	for i := range readers {
		all.Go(func() {
			var r fasthttp.Request
			var res fasthttp.Response
			for time.Since(begun) < turn {
				ask(&r, s.address, key, s.items[int(next.Add(1))%len(s.items)])
				one, err := get(c, &r, &res)
				if err != nil {
					b.Error(s.name, err)
					return
				}
				took[i] = append(took[i], float64(one))
			}
		})
	}
	all.Wait()
	seconds := time.Since(begun).Seconds()
	if b.Failed() {
		b.FailNow()
	}
	if !counts {
		return
	}
	every := slices.Concat(took...)
	slices.Sort(every)
	s.rates = append(s.rates, float64(len(every))/seconds)
	s.cpus = append(s.cpus, float64(s.cpu(b)-used)/float64(len(every)))
	s.p50s, s.p99s = append(s.p50s, every[len(every)/2]), append(s.p99s, every[len(every)*99/100])
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
