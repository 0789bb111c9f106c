package trail

import (
	"slices"
	"sync"
	"time"
)

const (
	maxRows     = 1000
	maxAttempts = 50 // of a row; the oldest go first
)

// Trail holds the newest rows.
type Trail struct {
	now func() time.Time

	mu      sync.Mutex
	rows    map[string]*Row
	order   []string // ids by number
	number  int
	version int
	changed chan struct{} // closed at the next change
	past    Count         // of the rows that were dropped
}

// New makes an empty trail.
func New() *Trail {
	return &Trail{now: time.Now, rows: map[string]*Row{}, changed: make(chan struct{})}
}

// Signal is what the panel shows of a signal.
type Signal struct {
	SignalID string `json:"signal_id"`
	Type     string `json:"type"`
	ItemID   string `json:"item_id"`
	Order    string `json:"order_external_id"`
}

// update changes the row of a signal, which it makes when it is new.
func (t *Trail) update(s Signal, change func(*Row)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rows[s.SignalID]
	if r == nil {
		t.number++
		r = &Row{Number: t.number, SignalID: s.SignalID, MintedAt: t.now().UTC(), Attempts: []Attempt{}}
		t.rows[s.SignalID] = r
		t.order = append(t.order, s.SignalID)
		t.dropOldest()
	}
	if r.Type == "" {
		r.Type, r.ItemID, r.Order = s.Type, s.ItemID, s.Order
	}
	change(r)
	t.announce(r)
}

func (t *Trail) announce(r *Row) {
	t.version++
	r.version = t.version
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *Trail) dropOldest() {
	if len(t.order) <= maxRows {
		return
	}
	t.past.add(t.rows[t.order[0]])
	delete(t.rows, t.order[0])
	t.order = slices.Delete(t.order, 0, 1)
}

// Minted records that the page has minted a signal, and whether its storage holds it.
func (t *Trail) Minted(s Signal, stored bool) {
	t.update(s, func(r *Row) { r.Stored = r.Stored || stored })
}

// Removed records that the page's storage no longer holds a signal. An unknown one is not recorded.
func (t *Trail) Removed(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.rows[id]; r != nil {
		r.Removed = true
		t.announce(r)
	}
}

// Sent records a request that carried the signal and how it ended.
func (t *Trail) Sent(s Signal, a Attempt) {
	t.update(s, func(r *Row) {
		if len(r.Attempts) == maxAttempts {
			r.Attempts = slices.Delete(r.Attempts, 0, 1)
		}
		r.Attempts = append(r.Attempts, a)
	})
}

// Received records what the engine received. Signals that are not on the trail are of other clients.
func (t *Trail) Received(id, result string, at time.Time, line *Line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rows[id]
	if r == nil {
		return
	}
	switch result {
	case "created":
		r.Created++
		r.CreatedAt = &at
	case "exists":
		r.Exists++
	}
	if line != nil {
		r.Line = line
	}
	t.announce(r)
}

// Since returns the rows that changed after a version, the present version, the count, and a channel that is
// closed at the next change. The rows are copies.
func (t *Trail) Since(version int) (rows []Row, now int, count Count, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	count = t.past
	for _, id := range t.order {
		r := t.rows[id]
		count.add(r)
		if r.version > version {
			row := *r
			row.Attempts = slices.Clone(r.Attempts)
			rows = append(rows, row)
		}
	}
	return rows, t.version, count, t.changed
}

func (c *Count) add(r *Row) {
	c.Minted++
	if r.Created > 0 {
		c.Counted++
	}
	if r.Created > 1 {
		c.Doubled++
	}
	if r.Created == 0 && r.Refused() {
		c.Refused++
	}
}
