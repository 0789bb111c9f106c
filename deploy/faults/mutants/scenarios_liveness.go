package mutants

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"storefront.internal/deploy/faults/liveness"
	"storefront.internal/deploy/faults/scenario"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/shared/backoff"
)

// outage takes one dependency down.
func outage(d liveness.Dependency, how liveness.How) run {
	return func(ctx context.Context, s *scenario.Env) error { return s.Outage(ctx, d, how) }
}

// greedyClients connect to edges with few connections and little room for bodies.
func greedyClients(ctx context.Context, s *scenario.Env) error {
	for _, edge := range s.Edges {
		err := s.Restart(ctx, edge, "EDGE_MAX_CONNECTIONS=500", "EDGE_MAX_BODY_BYTES=16777216")
		if err != nil {
			return err
		}
	}
	err := s.Outage(ctx, liveness.Clients, liveness.Greedy)
	for _, edge := range s.Edges {
		err = errors.Join(err, s.Restart(ctx, edge))
	}
	return err
}

// engineRefuses lets the engine refuse all interactions of three connections for a while.
func engineRefuses(ctx context.Context, s *scenario.Env) error {
	all := []*scenario.Env{s}
	for range 2 {
		other, err := scenario.New(ctx, s.Topology, s.Merchant, nil)
		if err != nil {
			return err
		}
		all = append(all, other)
	}
	send := func(n int) error {
		return scenario.Concurrently(len(all), func(i int) error {
			c := all[i].Connection
			d, err := c.Recommend(ctx, s.Edge(1))
			if err != nil {
				return err
			}
			for range n {
				err = errors.Join(err, c.SendUntilAccepted(ctx, s.Edge(1), c.AddToCart(d, 20)))
			}
			return err
		})
	}
	if err := errors.Join(send(1), s.WaitIdle(ctx)); err != nil {
		return err
	}
	err := s.Fault("N12", `the engine answers {"interactions":{"status":422}}`, func() error {
		err := s.SetEngineBehaviour(ctx, map[string]any{"status": http.StatusUnprocessableEntity})
		if err == nil {
			err = send(4)
		}
		return errors.Join(err, backoff.Sleep(ctx, 15*time.Second), s.SetEngineBehaviour(ctx, nil))
	})
	for _, x := range all {
		n, e := s.API().ReplayDead(ctx, x.Connection.ID, client.Interaction)
		s.Options.Replayed += n
		err = errors.Join(err, e)
	}
	return err
}

const deadEnvelopes = `SELECT count(*) FROM delivery.dead WHERE kind = 2 AND connection_id = $1`

// envelopesRefused lets the engine refuse announcements until one is dead, and replays them.
func envelopesRefused(ctx context.Context, s *scenario.Env) error {
	if err := s.Relays[1].Stop(ctx); err != nil { // the other one knows the engine as working
		return err
	}
	behave := func(calls any) error {
		return client.Call(ctx, nil, client.Request{Method: http.MethodPost,
			URL: s.Engine.URL + "/debug/behaviour", Body: calls}, nil)
	}
	_, err := s.Connection.ObserveProducts(ctx, 10)
	if err = errors.Join(err, s.WaitIdle(ctx)); err != nil {
		return err
	}
	err = s.Fault("N12", `the engine answers {"observations":{"status":422}}`, func() error {
		refusal := map[string]int{"status": http.StatusUnprocessableEntity}
		err := behave(map[string]any{"observations": refusal})
		for i := range 3 {
			_, e := s.Connection.Observe(ctx, fmt.Sprintf("refused-%d", i), 1, `{"n":1}`)
			err = errors.Join(err, e)
		}
		if err == nil {
			err = scenario.Until(ctx, "a dead envelope", func() (bool, error) {
				n, err := s.Count(ctx, deadEnvelopes)
				return n > 0, err
			})
		}
		return errors.Join(err, behave(struct{}{}))
	})
	n, e := s.API().ReplayDead(ctx, s.Connection.ID, client.Envelope)
	s.Options.Replayed += n
	return errors.Join(err, e, s.Relays[1].Start(ctx))
}

// correctedProduct delivers a product that breaks a rule, and then a valid one.
func correctedProduct(ctx context.Context, s *scenario.Env) error {
	_, err := s.Connection.Observe(ctx, "p-1", 1, `{"n":1}`)
	err = errors.Join(err, s.Connection.ObserveInvalid(ctx, "p-1", 2),
		s.Connection.ObserveInvalid(ctx, "p-2", 1))
	for external, revision := range map[string]int64{"p-1": 3, "p-2": 2} {
		_, e := s.Connection.Observe(ctx, external, revision, `{"n":3}`)
		err = errors.Join(err, e)
	}
	return err
}

// signalParked makes PostgreSQL reject the value of a signal, and replays it when that is over.
func signalParked(ctx context.Context, s *scenario.Env) error {
	d, err := s.Connection.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	const waiting = `SELECT count(*) FROM relay.parked WHERE connection_id = $1 AND replayed_at IS NULL`
	err = s.Fault("N9", "relay.signals rejects a value", func() error {
		if err := s.Exec(ctx, fmt.Sprintf(rejectRows, s.Connection.ID, "22023")); err != nil {
			return err
		}
		err := s.Connection.SendUntilAccepted(ctx, s.Edge(1), s.Connection.AddToCart(d, 6))
		if err == nil {
			err = scenario.Until(ctx, "a parked signal", func() (bool, error) {
				n, err := s.Count(ctx, waiting)
				return n > 0, err
			})
		}
		return errors.Join(err, s.Exec(ctx, acceptRows))
	})
	if err != nil {
		return err
	}
	all, err := s.API().ListParked(ctx)
	for _, p := range all {
		err = errors.Join(err, s.API().ReplayParked(ctx, p.ParkedID))
	}
	return errors.Join(err, backoff.Sleep(ctx, 6*time.Second))
}

// visitorErased erases a visitor whose signals are stored, and one whose signals are on their way.
func visitorErased(ctx context.Context, s *scenario.Env) error {
	d, err := s.Connection.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	for _, wait := range []bool{true, false} {
		visitor := "vis_" + strconv.FormatInt(time.Now().UnixNano(), 36)
		s.Connection.SendOfVisitor(ctx, s.Edge(1), d, visitor)
		if wait {
			err = s.WaitIdle(ctx)
		}
		if err = errors.Join(err, s.Connection.EraseVisitor(ctx, visitor)); err != nil {
			return err
		}
	}
	return nil
}

// buyersRedacted redacts a buyer whose address is a part of another buyer's, and one whose purchase reaches
// PostgreSQL later, in a transaction that fails at first.
func buyersRedacted(ctx context.Context, s *scenario.Env) error {
	if err := s.Merchant.Open(ctx, s); err != nil {
		return err
	}
	kept, named, bought := s.Merchant.NextOrder(), s.Merchant.NextOrder(), s.Merchant.NextOrder()
	for _, order := range []string{kept, named, bought} {
		if err := s.Merchant.AnnounceOrder(ctx, s, order); err != nil {
			return err
		}
	}
	if err := s.WaitIdle(ctx); err != nil {
		return err
	}
	if err := s.Merchant.Redact(ctx, s, named, kept+"@mail.example", ""); err != nil {
		return err
	}
	return buyerRedactedLate(ctx, s, bought)
}

func buyerRedactedLate(ctx context.Context, s *scenario.Env, order string) error {
	shop := s.Merchant.Shop(s)
	if err := shop.NewKey(ctx); err != nil {
		return err
	}
	d, err := shop.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	visitor := "vis_" + strconv.FormatInt(time.Now().UnixNano(), 36)
	shop.SendOfVisitor(ctx, s.Edge(1), d, visitor)
	if err := s.WaitIdle(ctx); err != nil {
		return err
	}
	err = s.Fault("N9", "relays paused, then relay.signals rejects rows", func() error {
		for _, r := range s.Relays {
			if err := r.Pause(); err != nil {
				return err
			}
		}
		purchase := shop.Signal(d, "purchase", "itm_03")
		purchase.OrderID, purchase.Visitor.VisitorID, purchase.VisitorErased = order, visitor, true
		err := errors.Join(shop.SendUntilAccepted(ctx, s.Edge(1), shop.Batch(purchase)),
			s.Merchant.Redact(ctx, s, order, "buyer-"+order+"@mail.example", visitor))
		if err == nil {
			err = scenario.Until(ctx, "the erasure of the order", func() (bool, error) {
				n, err := s.Count(ctx, `SELECT count(*) FROM relay.erasures WHERE subject = 'order'
					AND connection_id <> $1 AND completed_at IS NULL`)
				return n > 0, err
			})
		}
		err = errors.Join(err, s.Exec(ctx, fmt.Sprintf(rejectRows, shop.ID, "53100")))
		for _, r := range s.Relays {
			err = errors.Join(err, r.Resume())
		}
		return errors.Join(err, backoff.Sleep(ctx, 4*time.Second), s.Exec(ctx, acceptRows))
	})
	return err
}
