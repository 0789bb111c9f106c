package webhook

import (
	"sync"
	"time"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// Quota is what an endpoint may deliver to one process in a minute.
type Quota struct {
	Deliveries int
	Bytes      int
}

// quotas counts what each endpoint delivered in the present minute. It remembers endpoints whose signatures
// were right, so strangers cannot fill it.
type quotas struct {
	of  Quota
	now func() time.Time

	mu     sync.Mutex
	minute time.Time
	used   map[ident.EndpointID]Quota
}

func newQuotas(of Quota, now func() time.Time) *quotas {
	return &quotas{of: of, now: now, used: make(map[ident.EndpointID]Quota)}
}

// take counts a delivery. Its error is rate_limited, and then nothing is counted. The first delivery of a
// minute is never too large.
func (q *quotas) take(e ident.EndpointID, bytes int) error {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if minute := now.Truncate(time.Minute); !minute.Equal(q.minute) {
		q.minute = minute
		clear(q.used)
	}
	used := q.used[e]
	if used.Deliveries > 0 && (used.Deliveries >= q.of.Deliveries || used.Bytes+bytes > q.of.Bytes) {
		return &fault.Error{Code: fault.RateLimited,
			Detail:     "The endpoint delivered too much in this minute.",
			RetryAfter: q.minute.Add(time.Minute).Sub(now)}
	}
	q.used[e] = Quota{used.Deliveries + 1, used.Bytes + bytes}
	return nil
}
