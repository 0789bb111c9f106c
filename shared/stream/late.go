package stream

import "time"

// onSlow makes room for other flushes, as this one may not be answered soon. When another leader usually
// answers much sooner, it gets the records, as far as resends allow it.
func (p *Producer) onSlow(reader *flushReader, at *reservation, attempt int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.ended {
		return
	}
	p.parts.markSlow(at)
	mayResend := !at.leader.closed() || p.resends.allowed()
	p.move(reader, at, attempt, p.parts.elsewhere(at, at.patience/2), mayResend)
	p.lookAgain(reader, at, attempt, p.parts.hungTime()-at.patience)
	p.dispatch()
}

func (p *Producer) lookAgain(reader *flushReader, at *reservation, attempt int, after time.Duration) {
	at.timer = time.AfterFunc(max(after, time.Millisecond), func() { p.onOverdue(reader, at, attempt) })
}

// onOverdue notes a leader that gives no sign of life, and sends the records of its attempt to another one. A
// leader that has answered later requests has lost this one, or its answer, and gets the records anew when
// there is no other. One that is merely slow is waited for.
func (p *Producer) onOverdue(reader *flushReader, at *reservation, attempt int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.ended {
		return
	}
	now, hung := p.cfg.Now(), p.parts.hungTime()
	sent := reader.sent(at.began)
	alive := sent
	if at.leader.answeredAt.After(sent) {
		alive = at.leader.answeredAt
	}
	if left := hung - now.Sub(sent); left > 0 {
		p.lookAgain(reader, at, attempt, left)
		return
	}
	to := p.parts.elsewhere(at, now.Sub(sent)/2)
	switch left := hung - now.Sub(alive); {
	case left <= 0:
		p.parts.markHung(at)
		p.metrics.unreachable.Set(float64(p.parts.unreachableLeaders()))
	default:
		if to == nil && reader.written() && at.leader.newest.After(sent) {
			to = p.parts.retryPartition(at)
		}
		p.lookAgain(reader, at, attempt, left)
	}
	p.move(reader, at, attempt, to, true)
	p.dispatch()
}

// move begins the second attempt of the records of a late one, which is still waited for: what it ends with
// then counts for its leader only. Records that the first leader may have are moved only if mayResend. The
// mutex is held.
func (p *Producer) move(reader *flushReader, at *reservation, attempt int, to *partition, mayResend bool) {
	if to == nil || at.moved || attempt >= maxAttempts || !hasWaiters(reader.records) {
		return
	}
	if !reader.withdraw() {
		if !mayResend || !reader.written() {
			return
		}
		if at.leader.closed() {
			p.resends.spend(reader.taken)
		}
		p.metrics.resentLate.Add(float64(reader.taken))
	}
	at.moved = true
	p.metrics.retries.Inc()
	if batch := p.finishAbandoned(reader.records, errSlow); len(batch) > 0 {
		next := p.parts.reserve(to)
		p.work.Go(func() { p.flush(batch, next, attempt+1) })
	}
}
