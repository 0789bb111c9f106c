// Package pools owns what operators see of connections to PostgreSQL and Redis: whether the store answers, and how far the process's pools are used, are waited for, and fail.
//
// It refuses to open pools and to configure them, and it asks a store nothing but whether it is there.
package pools

import (
	"context"
	"sync"
	"time"
)

// The bounds of asking whether a store answers: how long one question may take, and how long its answer serves scrapes.
const (
	pingTimeout = time.Second
	pingLife    = time.Second
)

// probe asks whether a store answers, once for scrapes that come close together.
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
