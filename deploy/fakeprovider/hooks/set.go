// Package hooks is a provider's webhooks: the subscriptions of a store, and the sender that signs, repeats,
// delays and forges. Topics, headers and bodies are each provider's own, and so is the policy for failed
// deliveries.
package hooks

import (
	"slices"
	"sync"
	"time"
)

// Hook is one subscription.
type Hook struct {
	ID               int64
	Name, Topic, URL string
	Secret           string // of WooCommerce; elsewhere the app's secret signs
	Status           string // of WooCommerce: active, paused, disabled
	Created, Updated time.Time

	failures int // in a row
}

// Set is the subscriptions of one store. The zero value is empty.
type Set struct {
	mu    sync.Mutex
	last  int64
	hooks []Hook
}

// Add stores a hook under a new id.
func (s *Set) Add(h Hook) Hook {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	h.ID = 7000 + s.last
	s.hooks = append(s.hooks, h)
	return h
}

// All returns the hooks for which keep is true, oldest first; a nil keep keeps all.
func (s *Set) All(keep func(Hook) bool) []Hook {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []Hook{}
	for _, h := range s.hooks {
		if keep == nil || keep(h) {
			all = append(all, h)
		}
	}
	return all
}

// Get returns one hook.
func (s *Set) Get(id int64) (Hook, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(id); i >= 0 {
		return s.hooks[i], true
	}
	return Hook{}, false
}

// Change edits one hook and returns it as it is then.
func (s *Set) Change(id int64, edit func(*Hook)) (Hook, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(id)
	if i < 0 {
		return Hook{}, false
	}
	edit(&s.hooks[i])
	return s.hooks[i], true
}

// Remove deletes one hook.
func (s *Set) Remove(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(id)
	if i >= 0 {
		s.hooks = slices.Delete(s.hooks, i, i+1)
	}
	return i >= 0
}

func (s *Set) find(id int64) int {
	return slices.IndexFunc(s.hooks, func(h Hook) bool { return h.ID == id })
}

// countResult counts the outcome of a delivery and returns the number of failures in a row.
func (s *Set) countResult(id int64, ok bool) int {
	h, _ := s.Change(id, func(h *Hook) {
		h.failures++
		if ok {
			h.failures = 0
		}
	})
	return h.failures
}
