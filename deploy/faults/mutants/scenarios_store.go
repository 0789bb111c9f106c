package mutants

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/faults/stage"
	"storefront.internal/deploy/faults/topology"
	"storefront.internal/shared/crashpoint"
)

// sinkKilled: the only relay dies before its COMMIT.
func sinkKilled(ctx context.Context, s *stage.Stage) error {
	d, err := s.Shop.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	if err := s.Rest(ctx); err != nil { // the Decision is stored: the next transaction holds signals
		return err
	}
	if err := s.Relays[1].Kill(ctx); err != nil {
		return err
	}
	starts := s.Relays[0].Starts() + 1 // the next one is armed
	if err := s.Arm(ctx, s.Relays[0], crashpoint.SinkBeforeCommit, "kill"); err != nil {
		return errors.Join(err, s.Relays[1].Start(ctx))
	}
	err = s.Fault("N1", "relay-1 killed before its COMMIT", func() error {
		for range 5 {
			if err := s.Shop.Deliver(ctx, s.Edge(1), s.Shop.Adds(d, 4)); err != nil {
				return err
			}
		}
		return stage.Until(ctx, "the crash of relay-1", func() (bool, error) { return s.Relays[0].Starts() > starts, nil })
	})
	return errors.Join(err, s.Relays[1].Start(ctx))
}

// refusing is a trigger that makes the database refuse some rows as if its disk were full.
const refusing = `
CREATE OR REPLACE FUNCTION relay.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.connection_id = '%s' AND NEW.item_id = 'itm_03' THEN
		RAISE EXCEPTION 'no room' USING ERRCODE = '53100';
	END IF;
	RETURN NEW;
END $$;
BEGIN;
LOCK TABLE relay.signals IN ACCESS EXCLUSIVE MODE;
CREATE TRIGGER refuse BEFORE INSERT ON relay.signals FOR EACH ROW EXECUTE FUNCTION relay.refuse();
COMMIT`

// relenting takes it off. Both lock the table from its root on, as whoever writes to it does; else a deadlock would be the scenario's.
const relenting = `BEGIN; LOCK TABLE relay.signals IN ACCESS EXCLUSIVE MODE; DROP TRIGGER refuse ON relay.signals; COMMIT`

// refusingDatabase: the database cannot take some rows for a while.
func refusingDatabase(ctx context.Context, s *stage.Stage) error {
	d, err := s.Shop.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	return s.Fault("N9", "relay.signals refuses rows", func() error {
		if err := s.Exec(ctx, fmt.Sprintf(refusing, s.Shop.Connection)); err != nil {
			return err
		}
		err := s.Shop.Deliver(ctx, s.Edge(1), s.Shop.Adds(d, 6))
		return errors.Join(err, topology.Sleep(ctx, 4*time.Second), s.Exec(ctx, relenting))
	})
}

// stalledCourier: a relay stands still with an answer of the engine in its hands; another one delivers the same once more.
func stalledCourier(ctx context.Context, s *stage.Stage) error {
	d, err := s.Shop.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	if err := s.Relays[1].Kill(ctx); err != nil {
		return err
	}
	if err := s.Arm(ctx, s.Relays[0], crashpoint.DeliverAnswered, "stop"); err != nil {
		return errors.Join(err, s.Relays[1].Start(ctx))
	}
	return s.Fault("N2", "relay-1 stopped with an answer", func() error {
		err := s.Shop.Deliver(ctx, s.Edge(1), s.Shop.Adds(d, 5))
		if err == nil {
			err = stage.Until(ctx, "stop of relay-1", func() (bool, error) { return s.Relays[0].Stopped(), nil })
		}
		err = errors.Join(err, s.Relays[1].Start(ctx))
		if err == nil {
			err = stage.Until(ctx, "delivery by relay-2", func() (bool, error) { return nothingWaits(ctx, s) })
		}
		return errors.Join(err, s.Relays[0].Continue(), topology.Sleep(ctx, 2*time.Second))
	})
}

// nothingWaits tells whether the shop's queue is empty.
func nothingWaits(ctx context.Context, s *stage.Stage) (bool, error) {
	queue, err := s.API().Queue(ctx)
	if err != nil {
		return false, err
	}
	for _, c := range queue.Connections {
		if c.ConnectionID == s.Shop.Connection && c.Pending > 0 {
			return false, nil
		}
	}
	return true, nil
}

// refusedCredential: the engine answers 401 for a while. All signals are of one lane, so one request may be under way.
func refusedCredential(ctx context.Context, s *stage.Stage) error {
	d, err := s.Shop.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	s.Opt.InFlight = 1
	err = s.Fault("N12", "interactions are answered 401", func() error {
		err := s.Behave(ctx, map[string]any{"status": http.StatusUnauthorized})
		if err == nil {
			err = s.Shop.Deliver(ctx, s.Edge(1), s.Shop.Adds(d, 5))
		}
		return errors.Join(err, topology.Sleep(ctx, 25*time.Second), s.Behave(ctx, nil))
	})
	if err != nil {
		return err
	}
	if err := s.API().Resume(ctx); err != nil && !strings.Contains(err.Error(), "409") { // 409: it is not blocked
		return err
	}
	return nil
}

// deafEngine: the engine takes what it is sent and ends the connection without an answer.
func deafEngine(ctx context.Context, s *stage.Stage) error {
	d, err := s.Shop.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	return s.Fault("N12", "interactions are taken and not answered", func() error {
		err := s.Behave(ctx, map[string]any{"after_effect": true, "times": 2})
		return errors.Join(err, s.Shop.Deliver(ctx, s.Edge(1), s.Shop.Adds(d, 5)), topology.Sleep(ctx, 3*time.Second), s.Behave(ctx, nil))
	})
}

// cutRequests: connections to the engine end in the middle of a request.
func cutRequests(ctx context.Context, s *stage.Stage) error {
	d, err := s.Shop.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	return s.Fault("N5", "relays>engine cut within requests", func() error {
		var err error
		for _, r := range s.Relays {
			way := s.Link(r.Name, "engine")
			way.Cut() // what is open and idle goes
			err = errors.Join(err, way.Heal(), way.Truncate(300))
		}
		if err == nil {
			err = s.Shop.Deliver(ctx, s.Edge(1), s.Shop.Adds(d, 8))
		}
		err = errors.Join(err, topology.Sleep(ctx, 4*time.Second))
		for _, r := range s.Relays {
			err = errors.Join(err, s.Link(r.Name, "engine").Heal())
		}
		return err
	})
}

// connector delivers raw content with white space in it, and an old revision after a newer one.
func connector(ctx context.Context, s *stage.Stage) error {
	for _, o := range []struct {
		external string
		revision int64
		raw      string
	}{
		{"p-1", 5, `{ "title" : "as it is",  "n": 1.50 }`}, {"p-1", 3, `{"n": 3}`}, {"p-2", 1, `[1, 2]`}, {"p-1", 6, `null`}, {"p-1", 4, `{"n" :4}`},
	} {
		if _, err := s.Shop.Observe(ctx, stage.PlaceOf(s.Control), o.external, o.revision, o.raw); err != nil {
			return err
		}
	}
	return nil
}

// sameNews: a product changes twice, and both notifications have the same bytes.
func sameNews(ctx context.Context, s *stage.Stage) error {
	if err := s.Merchant.Open(ctx, s); err != nil {
		return err
	}
	for n := range 3 {
		call := s.Recorder.Invoke(history.Event{Op: history.Webhook, Edge: "control", Connection: s.Merchant.Connection})
		err := s.Merchant.Change(ctx, s, fmt.Sprintf("change %d", n))
		s.Recorder.End(call, history.Event{Op: history.Webhook, Kind: history.Info})
		if err != nil {
			return err
		}
		if err := topology.Sleep(ctx, 3*time.Second); err != nil { // the first is fetched before the second comes
			return err
		}
	}
	return nil
}

// slow is a trigger that makes the database take its time over each cart line, so that transactions meet.
const slow = `
CREATE OR REPLACE FUNCTION relay.slow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_sleep(0.003);
	RETURN NEW;
END $$;
CREATE TRIGGER slow BEFORE INSERT ON relay.cart_lines FOR EACH ROW EXECUTE FUNCTION relay.slow()`

// twoSinks: two relays fold a long queue of signals into the same few lines, in many small transactions.
func twoSinks(ctx context.Context, s *stage.Stage) error {
	d, err := s.Shop.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	for _, r := range s.Relays {
		if err := s.Restart(ctx, r, "RELAY_SINK_BATCH=50", "RELAY_SINK_WORKERS=4"); err != nil {
			return err
		}
	}
	if err := s.Exec(ctx, slow); err != nil {
		return err
	}
	err = s.Fault("N2", "relay-1 and relay-2 stopped, cart lines are slow", func() error {
		for _, r := range s.Relays {
			if err := r.Pause(); err != nil {
				return err
			}
		}
		err := stage.Together(8, func(i int) error {
			for range 3 {
				batch := s.Shop.Adds(d, 40)
				slices.Reverse(batch)
				if err := s.Shop.Deliver(ctx, s.Edge(1+i%2), batch); err != nil {
					return err
				}
			}
			return nil
		})
		for _, r := range s.Relays {
			err = errors.Join(err, r.Continue())
		}
		// Not until they are done: relays that lock each other out might never be.
		return errors.Join(err, topology.Sleep(ctx, 8*time.Second), s.Exec(ctx, `DROP TRIGGER slow ON relay.cart_lines`))
	})
	for _, r := range s.Relays {
		err = errors.Join(err, s.Restart(ctx, r))
	}
	return err
}
