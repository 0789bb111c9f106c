package stream

import "time"

// latency estimates how long a leader takes to answer, as TCP estimates a round trip (RFC 6298). The zero
// value knows nothing.
type latency struct {
	mean      time.Duration
	deviation time.Duration // from the mean, on average
}

func (l *latency) known() bool { return l.mean > 0 }

// note takes the time of one answer into account.
func (l *latency) note(took time.Duration) {
	took = max(took, 1)
	if !l.known() {
		l.mean, l.deviation = took, took/2
		return
	}
	l.deviation += ((took - l.mean).Abs() - l.deviation) / 4
	l.mean += (took - l.mean) / 8
}

// most is the time within which nearly every answer comes.
func (l *latency) most() time.Duration { return l.mean + 4*l.deviation }
