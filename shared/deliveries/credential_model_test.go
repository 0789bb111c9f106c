package deliveries_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/ident"
)

// probing is how the probe of a refused credential stands.
type probing int

const (
	noProbe probing = iota // until the next resume
	mayProbe
	underWay
)

// refused is what the model knows of one credential.
type refused struct {
	blocked bool
	probe   probing
	cleared int       // the step at which it was let go, 0 when never
	since   time.Time // the view's word, while it is blocked
}

// held is a lease, the credential it was taken with, and when.
type held struct {
	*deliveries.Lease
	with deliveries.Credential
	step int
}

// credentials is the model of the 401 state: two credentials, of which the relay has one at a time.
type credentials struct {
	*queue
	steps   int
	current deliveries.Credential
	state   map[deliveries.Credential]*refused
	leases  []held
}

// TestCredentialStates plays random refusals, late ones too, probes, resumes and changes of the credential on
// real PostgreSQL against the model: who is refused takes nothing but a probe, an answer to the old
// credential never blocks the new one, and blocked_at stands as long as the block does.
func TestCredentialStates(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	rapid.Check(t, func(rt *rapid.T) {
		q.admin(
			`TRUNCATE delivery.entries, delivery.lanes, delivery.deltas, delivery.counts, delivery.blocks, delivery.relays`,
		)
		for i := range 6 {
			q.enqueueOnly(
				interaction(ident.ConnectionID(fmt.Sprint("con_", i)), "dec_1", fmt.Sprint("sig_", i)),
			)
		}
		q.compact()
		m := &credentials{queue: q, state: map[deliveries.Credential]*refused{{1}: {}, {2}: {}}}
		m.configure(deliveries.Credential{1})
		rt.Repeat(map[string]func(*rapid.T){
			"":         m.look,
			"lease":    m.takes,
			"refuse":   m.refuses,
			"answer":   m.answers,
			"lose":     m.loses,
			"resume":   m.resumes,
			"exchange": func(rt *rapid.T) { m.configure(anyCredential(rt)) },
		})
	})
}

func anyCredential(rt *rapid.T) deliveries.Credential {
	return deliveries.Credential{rapid.SampledFrom([]byte{1, 2}).Draw(rt, "credential")}
}

func (m *credentials) configure(c deliveries.Credential) {
	m.current = c
	m.beat("a", &c)
}

// findMatches compares the view with the model.
func (m *credentials) look(rt *rapid.T) {
	m.steps++
	s, w := m.state[m.current], m.view().Worker
	switch {
	case s.blocked != (w.State == deliveries.Blocked), !s.blocked && w.State != deliveries.Running:
		rt.Fatalf("the worker is %s, the model says blocked: %t", w.State, s.blocked)
	case s.blocked && s.since.IsZero():
		s.since = w.BlockedAt
	case s.blocked && !s.since.Equal(w.BlockedAt):
		rt.Fatalf("blocked since %v, before since %v", w.BlockedAt, s.since)
	}
}

func (m *credentials) takes(rt *rapid.T) {
	if len(m.leases) == 5 {
		rt.Skip("one lane stays free")
	}
	c := anyCredential(rt)
	s, tq := m.state[c], query()
	tq.Credential, tq.TTL = c, time.Hour
	l, err := leaseOne(context.Background(), m.relay, tq)
	switch {
	case s.blocked && s.probe != mayProbe:
		if !errors.Is(err, deliveries.ErrBlocked) {
			rt.Fatalf("a refused credential took %v, %v", l, err)
		}
		return
	case err != nil || l == nil:
		rt.Fatalf("took %v, %v", l, err)
	case l.Probe != s.blocked:
		rt.Fatalf("probe: %t, blocked: %t", l.Probe, s.blocked)
	case l.Probe:
		s.probe = underWay
	}
	m.leases = append(m.leases, held{l, c, m.steps})
}

// pop ends one of the leases: nothing of it was delivered.
func (m *credentials) pop(rt *rapid.T) held {
	if len(m.leases) == 0 {
		rt.Skip("no lease")
	}
	i := rapid.IntRange(0, len(m.leases)-1).Draw(rt, "lease")
	l := m.leases[i]
	m.leases = append(m.leases[:i], m.leases[i+1:]...)
	m.complete(l.Lease)
	return l
}

func (m *credentials) refuses(rt *rapid.T) {
	l := m.pop(rt)
	m.do(
		m.relay.Block(
			context.Background(),
			deliveries.Refusal{Credential: l.with, LeasedAt: l.LeasedAt, Probe: l.Probe},
		),
	)
	s := m.state[l.with]
	if l.Probe || s.cleared == 0 || s.cleared < l.step {
		if !s.blocked {
			s.blocked, s.since = true, time.Time{}
		}
	}
	if l.Probe {
		s.probe = noProbe
	}
}

func (m *credentials) answers(rt *rapid.T) {
	l := m.pop(rt)
	if !l.Probe {
		return
	}
	m.do(m.relay.Unblock(context.Background(), l.with))
	if s := m.state[l.with]; s.blocked {
		*s = refused{cleared: m.steps}
	}
}

// loses is a probe that nothing answered.
func (m *credentials) loses(rt *rapid.T) {
	l := m.pop(rt)
	if !l.Probe {
		return
	}
	m.do(m.relay.AllowProbeAfter(context.Background(), l.with, 0))
	if s := m.state[l.with]; s.probe != noProbe {
		s.probe = mayProbe
	}
}

func (m *credentials) resumes(rt *rapid.T) {
	err := m.control.Resume(context.Background())
	if blocked := m.state[m.current].blocked; blocked != (err == nil) {
		rt.Fatalf("resume: %v, blocked: %t", err, blocked)
	}
	for _, s := range m.state {
		if err == nil && s.blocked {
			s.probe = mayProbe
		}
	}
}
