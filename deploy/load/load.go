// Package load sends HTTP/1.1 requests over kept connections, as cheaply as possible, since it shares the
// machine with what it measures. It has the closed loop (a client sends as soon as it was answered) and the
// open loop (requests are due at fixed times, and latency counts from then, so that requests that a stall
// held up show the stall). It is not a general client: a response needs a Content-Length.
package load

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Case is one kind of load on one server.
type Case struct {
	Address     string
	Connections int
	// Request returns the next request of a client; its bytes are used until the response is there.
	Request func(connection int) []byte
	// Answer checks a response; an error ends the client.
	Answer func(connection, status int, body []byte) error
}

// Result is the result of a run.
type Result struct {
	Seconds float64
	Took    []time.Duration // of each request, in order of size
}

// Rate is the number of responses a second.
func (r Result) Rate() float64 { return float64(len(r.Took)) / r.Seconds }

// Percentile is the time within which p of a hundred requests were answered.
func (r Result) Percentile(p float64) time.Duration {
	if len(r.Took) == 0 {
		return 0
	}
	return r.Took[min(len(r.Took)-1, int(p/100*float64(len(r.Took))))]
}

// Closed lets each client send as soon as it was answered.
func Closed(c Case, length time.Duration) (Result, error) {
	begun := time.Now()
	return c.run(begun, func(int) (time.Time, bool) {
		now := time.Now()
		return now, now.Sub(begun) < length
	})
}

// Times lets client i send left[i] requests, each as soon as the one before was answered.
func Times(c Case, left []int) (Result, error) {
	return c.run(time.Now(), func(i int) (time.Time, bool) {
		left[i]--
		return time.Now(), left[i] >= 0
	})
}

// Open sends requests at a rate a second; latency counts from the moment when a request was due.
func Open(c Case, rate float64, length time.Duration) (Result, error) {
	begun := time.Now()
	var taken atomic.Int64
	return c.run(begun, func(int) (time.Time, bool) {
		after := time.Duration(float64(taken.Add(1)) / rate * float64(time.Second))
		due := begun.Add(after)
		time.Sleep(time.Until(due))
		return due, after < length
	})
}

// Once sends one request and returns the response.
func Once(address string, request []byte) (status int, body []byte, err error) {
	conn, err := dial(address)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = conn.Close() }()
	return conn.exchange(request)
}

// run opens the connections and sends at the times that next returns.
func (c Case) run(begun time.Time, next func(connection int) (due time.Time, more bool)) (Result, error) {
	took, faults := make([][]time.Duration, c.Connections), make([]error, c.Connections)
	var all sync.WaitGroup
	for i := range c.Connections {
		all.Go(func() { took[i], faults[i] = c.connection(i, next) })
	}
	all.Wait()
	r := Result{Seconds: time.Since(begun).Seconds(), Took: slices.Concat(took...)}
	slices.Sort(r.Took)
	for _, err := range faults {
		if err != nil {
			return r, fmt.Errorf("%s: %w", c.Address, err)
		}
	}
	return r, nil
}

func (c Case) connection(i int, next func(int) (time.Time, bool)) (took []time.Duration, err error) {
	conn, err := dial(c.Address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	for due, more := next(i); more; due, more = next(i) {
		status, body, err := conn.exchange(c.Request(i))
		if err != nil {
			return took, err
		}
		took = append(took, time.Since(due))
		if err := c.Answer(i, status, body); err != nil {
			return took, err
		}
	}
	return took, nil
}
