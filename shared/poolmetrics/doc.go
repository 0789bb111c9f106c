// Package poolmetrics owns the metrics of connections to PostgreSQL and Redis: whether the store answers, and
// how far the pools of the process are used, waited for and fail. It neither opens nor configures pools, and
// sends a store nothing but a ping, and Redis the question how full it is.
package poolmetrics

import (
	"context"
	"sync"
	"time"
)

// How long a ping may take, and how long its result serves scrapes.
const (
	pingTimeout = time.Second
	pingLife    = time.Second
)

// probe pings a store, once for scrapes that come close together.
type probe struct {
	ping func(context.Context) error

	mu    sync.Mutex
	asked time.Time
	up    float64
}

func (p *probe) value() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.asked.IsZero() && time.Since(p.asked) < pingLife {
		return p.up
	}
	ctx, cancel := context.WithTimeout(context.Background(), pingTimeout)
	defer cancel()
	p.up = 0
	if p.ping(ctx) == nil {
		p.up = 1
	}
	p.asked = time.Now()
	return p.up
}
