package intake

import (
	"log/slog"
	"time"

	"storefront.internal/shared/signal"
)

// work is the scratch of one request. Get it from the pool, reset it before it goes back. The results leave it; what
// else it holds lives until reset, and nothing that was handed on points into it.
type work struct {
	scan    scanner
	req     *Request
	now     time.Time // by the service's clock
	began   time.Time // for durations
	judged  [maxSignals]judged
	results []signal.Result // the caller's

	first  []int      // elements that are the first sound one with their id, by position
	keys   []ClaimKey // their claims, in the same order
	claims contender  // of them
	record signal.Record
}

// begin prepares the results: one per position.
func (w *work) begin(req *Request, now time.Time) {
	w.req, w.now, w.began = req, now, time.Now()
	if req.ReceivedAt.IsZero() {
		req.ReceivedAt = now
	}
	if n := w.scan.batch.count; n <= cap(req.Results) {
		w.results = req.Results[:n]
		clear(w.results)
	} else {
		w.results = make([]signal.Result, n)
	}
}

// keptNames is how many names a pooled scratch keeps room for.
const keptNames = 256

func (w *work) reset() {
	n := min(w.scan.batch.count, maxSignals)
	clear(w.judged[:n])
	w.scan.reset()
	if cap(w.scan.names) > keptNames {
		w.scan.names = nil
	}
	w.req, w.results = nil, nil
	w.first, w.keys = w.first[:0], w.keys[:0]
	w.claims.reset()
	signals := w.record.Signals
	clear(signals)
	w.record = signal.Record{Signals: signals[:0]}
}

// judge fills the results of everything that needs no store: the rejected ones, and what repeats a signal of the
// batch. The first sound element with an id counts. The word duplicate for the others is true when the batch is
// answered at all, since then the first one is recorded.
func (s *Service) judge(w *work) {
	j := judging{rules: &s.rules, sc: &w.scan, connection: w.req.ConnectionID}
	var left discardCount
	for i := range w.results {
		r, e, out := &w.results[i], &w.scan.batch.elements[i], &w.judged[i]
		r.Index = i
		if reason := j.judge(e, out); reason != "" {
			r.Status, r.Reason = signal.Rejected, reason
			r.SignalID, r.HasSignalID = j.echo(e)
			continue
		}
		r.SignalID, r.HasSignalID = string(out.signal.ID), true
		left.add(out.discarded)
		key := ClaimKey(signal.LedgerDigest(w.req.ConnectionID, out.signal.ID))
		if contains(w.keys, key) {
			r.Status = signal.Duplicate
			continue
		}
		w.first = append(w.first, i)
		w.keys = append(w.keys, key)
	}
	s.report(w, left)
}

// echo returns what a rejected element called its signal_id; false when it was no text that can be written.
func (j *judging) echo(e *element) (string, bool) {
	v := &e.members[slotSignalID]
	if v.kind != text || v.flags&unstorable != 0 {
		return "", false
	}
	return j.sc.string(v), true
}

func contains(keys []ClaimKey, key ClaimKey) bool {
	for i := range keys {
		if keys[i] == key {
			return true
		}
	}
	return false
}

// discardCount counts the fields that a batch lost.
type discardCount struct{ visitor, client int }

func (c *discardCount) add(d discards) {
	if d.visitor {
		c.visitor++
	}
	if d.client {
		c.client++
	}
}

// report records the warning for discarded fields: it names the fields and never a value (spec.md "Signal", rule 2).
func (s *Service) report(w *work, c discardCount) {
	if c.visitor > 0 {
		s.warn(w, "visitor", c.visitor)
	}
	if c.client > 0 {
		s.warn(w, "client", c.client)
	}
}

func (s *Service) warn(w *work, field string, n int) {
	s.cfg.Metrics.discarded.WithLabelValues(field).Add(float64(n))
	s.cfg.Logger.Warn("malformed field discarded from signals", slog.String("field", field), slog.Int("signals", n),
		slog.String("connection_id", string(w.req.ConnectionID)))
}
