package stream

// recordQueue is the records that no flush has yet, oldest first. The records are its links, since a list of
// package container/list would need another allocation for each.
type recordQueue struct{ first, last *queuedRecord }

func (q *recordQueue) push(rec *queuedRecord) {
	rec.queued, rec.previous = true, q.last
	if q.last == nil {
		q.first = rec
	} else {
		q.last.next = rec
	}
	q.last = rec
}

func (q *recordQueue) remove(rec *queuedRecord) {
	if rec.previous == nil {
		q.first = rec.next
	} else {
		rec.previous.next = rec.next
	}
	if rec.next == nil {
		q.last = rec.previous
	} else {
		rec.next.previous = rec.previous
	}
	rec.queued, rec.previous, rec.next = false, nil, nil
}
