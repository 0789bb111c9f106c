package httpapi

import "sync/atomic"

// shed bounds what is in work at once: requests, and bytes of their bodies. Both limits are fixed; what is over is
// answered 503 at once, since a queue would only make everybody late.
type shed struct {
	maxRequests, maxBytes int64
	requests, bytes       atomic.Int64
}

// enter takes room for a body of n bytes. Refused, it says which limit it was; taken, leave gives the room back.
func (s *shed) enter(n int) (reason string, ok bool) {
	if s.requests.Add(1) > s.maxRequests {
		s.requests.Add(-1)
		return "in_flight", false
	}
	if s.bytes.Add(int64(n)) > s.maxBytes {
		s.bytes.Add(-int64(n))
		s.requests.Add(-1)
		return "body_bytes", false
	}
	return "", true
}

func (s *shed) leave(n int) {
	s.bytes.Add(-int64(n))
	s.requests.Add(-1)
}
