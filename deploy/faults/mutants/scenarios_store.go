package mutants

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"storefront.internal/deploy/faults/scenario"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/failpoint"
)

// relayKilled kills the only relay before its COMMIT.
func relayKilled(ctx context.Context, s *scenario.Env) error {
	d, err := s.Connection.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	if err := s.WaitIdle(ctx); err != nil { // the Decision is stored: the next transaction contains signals
		return err
	}
	if err := s.Relays[1].Kill(ctx); err != nil {
		return err
	}
	starts := s.Relays[0].Starts() + 1 // the next start is armed
	if err := s.ArmFailpoint(ctx, s.Relays[0], failpoint.SinkBeforeCommit, "kill"); err != nil {
		return errors.Join(err, s.Relays[1].Start(ctx))
	}
	err = s.Fault("N1", "relay-1 killed before its COMMIT", func() error {
		for range 5 {
			if err := s.Connection.SendUntilAccepted(ctx, s.Edge(1),
				s.Connection.AddToCart(d, 4)); err != nil {
				return err
			}
		}
		return scenario.Until(ctx, "the crash of relay-1",
			func() (bool, error) { return s.Relays[0].Starts() > starts, nil })
	})
	return errors.Join(err, s.Relays[1].Start(ctx))
}

// rejectRows creates a trigger that rejects some rows of a connection with an error code: 53100 is a full
// disk, 22023 an invalid value. Like acceptRows it locks the
// parent table first, as the sink does: otherwise the scenario itself would cause a deadlock.
const rejectRows = `
CREATE OR REPLACE FUNCTION relay.reject() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.connection_id = '%s' AND NEW.item_id = 'itm_03' THEN
		RAISE EXCEPTION 'a fault' USING ERRCODE = '%s';
	END IF;
	RETURN NEW;
END $$;
BEGIN;
LOCK TABLE relay.signals IN ACCESS EXCLUSIVE MODE;
CREATE TRIGGER reject BEFORE INSERT ON relay.signals FOR EACH ROW EXECUTE FUNCTION relay.reject();
COMMIT`

// acceptRows drops the trigger.
const acceptRows = `BEGIN; LOCK TABLE relay.signals IN ACCESS EXCLUSIVE MODE;
DROP TRIGGER reject ON relay.signals; COMMIT`

// databaseRejectsRows makes the database reject some rows for a while.
func databaseRejectsRows(ctx context.Context, s *scenario.Env) error {
	d, err := s.Connection.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	return s.Fault("N9", "relay.signals rejects rows", func() error {
		if err := s.Exec(ctx, fmt.Sprintf(rejectRows, s.Connection.ID, "53100")); err != nil {
			return err
		}
		err := s.Connection.SendUntilAccepted(ctx, s.Edge(1), s.Connection.AddToCart(d, 6))
		return errors.Join(err, backoff.Sleep(ctx, 4*time.Second), s.Exec(ctx, acceptRows))
	})
}

// relayPaused pauses a relay after it got a response of the engine. The other relay sends the same delivery
// again.
func relayPaused(ctx context.Context, s *scenario.Env) error {
	d, err := s.Connection.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	if err := s.Relays[1].Kill(ctx); err != nil {
		return err
	}
	if err := s.ArmFailpoint(ctx, s.Relays[0], failpoint.DeliverAnswered, "stop"); err != nil {
		return errors.Join(err, s.Relays[1].Start(ctx))
	}
	return s.Fault("N2", "relay-1 paused with a response", func() error {
		err := s.Connection.SendUntilAccepted(ctx, s.Edge(1), s.Connection.AddToCart(d, 5))
		if err == nil {
			err = scenario.Until(ctx, "stop of relay-1", func() (bool, error) {
				return s.Relays[0].Paused(),
					nil
			})
		}
		err = errors.Join(err, s.Relays[1].Start(ctx))
		if err == nil {
			err = scenario.Until(ctx, "delivery by relay-2",
				func() (bool, error) { return queueEmpty(ctx, s) })
		}
		return errors.Join(err, s.Relays[0].Resume(), backoff.Sleep(ctx, 2*time.Second))
	})
}

// queueEmpty reports whether the connection has no pending deliveries.
func queueEmpty(ctx context.Context, s *scenario.Env) (bool, error) {
	queue, err := s.API().ViewQueue(ctx)
	if err != nil {
		return false, err
	}
	for _, c := range queue.Connections {
		if c.ConnectionID == s.Connection.ID && c.Pending > 0 {
			return false, nil
		}
	}
	return true, nil
}

// credentialRejected lets the engine answer 401 for a while. All signals are in one lane, so one request may
// be in flight.
func credentialRejected(ctx context.Context, s *scenario.Env) error {
	d, err := s.Connection.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	s.Options.InFlight = 1
	err = s.Fault("N12", "interactions are answered 401", func() error {
		err := s.SetEngineBehaviour(ctx, map[string]any{"status": http.StatusUnauthorized})
		if err == nil {
			err = s.Connection.SendUntilAccepted(ctx, s.Edge(1), s.Connection.AddToCart(d, 5))
		}
		return errors.Join(err, backoff.Sleep(ctx, 25*time.Second), s.SetEngineBehaviour(ctx, nil))
	})
	if err != nil {
		return err
	}
	// 409: the worker is not blocked
	if err := s.API().ResumeDelivery(ctx); err != nil && !strings.Contains(err.Error(), "409") {
		return err
	}
	return nil
}

// engineResponsesLost lets the engine process requests and close the connection without a response.
func engineResponsesLost(ctx context.Context, s *scenario.Env) error {
	d, err := s.Connection.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	return s.Fault("N12", "interactions are processed and not answered", func() error {
		err := s.SetEngineBehaviour(ctx, map[string]any{"after_effect": true, "times": 2})
		return errors.Join(err, s.Connection.SendUntilAccepted(ctx, s.Edge(1), s.Connection.AddToCart(d, 5)),
			backoff.Sleep(ctx, 3*time.Second), s.SetEngineBehaviour(ctx, nil))
	})
}

// requestsTruncated closes connections to the engine in the middle of a request.
func requestsTruncated(ctx context.Context, s *scenario.Env) error {
	d, err := s.Connection.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	return s.Fault("N5", "relays>engine closed within requests", func() error {
		var err error
		for _, r := range s.Relays {
			l := s.Link(r.Name, "engine")
			l.Cut() // close idle connections
			err = errors.Join(err, l.Heal(), l.Truncate(300))
		}
		if err == nil {
			err = s.Connection.SendUntilAccepted(ctx, s.Edge(1), s.Connection.AddToCart(d, 8))
		}
		err = errors.Join(err, backoff.Sleep(ctx, 4*time.Second))
		for _, r := range s.Relays {
			err = errors.Join(err, s.Link(r.Name, "engine").Heal())
		}
		return err
	})
}

// customConnector delivers raw content with white space, and old revisions after newer ones.
func customConnector(ctx context.Context, s *scenario.Env) error {
	for _, o := range []struct {
		external string
		revision int64
		raw      string
	}{
		{"p-1", 5, `{ "title" : "as it is",  "n": 1.50 }`}, {"p-1", 3, `{"n": 3}`}, {"p-2", 1,
			`[1, 2]`}, {"p-1", 6, `null`}, {"p-1", 4, `{"n" :4}`},
	} {
		if _, err := s.Connection.Observe(ctx, o.external, o.revision, o.raw); err != nil {
			return err
		}
	}
	return nil
}

// identicalWebhooks changes a product several times. All webhooks have the same bytes.
func identicalWebhooks(ctx context.Context, s *scenario.Env) error {
	if err := s.Merchant.Open(ctx, s); err != nil {
		return err
	}
	for n := range 3 {
		if err := s.Merchant.Rename(ctx, s, fmt.Sprintf("change %d", n)); err != nil {
			return err
		}
		// control fetches the product before the next webhook
		if err := backoff.Sleep(ctx, 3*time.Second); err != nil {
			return err
		}
	}
	return nil
}

// slowCartLines creates a trigger that delays the insert of cart lines, so that transactions overlap.
const slowCartLines = `
CREATE OR REPLACE FUNCTION relay.slow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_sleep(0.003);
	RETURN NEW;
END $$;
CREATE TRIGGER slow BEFORE INSERT ON relay.cart_lines FOR EACH ROW EXECUTE FUNCTION relay.slow()`

// twoSinks lets two relays fold many signals into the same cart lines in many small transactions.
func twoSinks(ctx context.Context, s *scenario.Env) error {
	d, err := s.Connection.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	for _, r := range s.Relays {
		if err := s.Restart(ctx, r, "RELAY_SINK_BATCH=50", "RELAY_SINK_WORKERS=4"); err != nil {
			return err
		}
	}
	if err := s.Exec(ctx, slowCartLines); err != nil {
		return err
	}
	err = s.Fault("N2", "relay-1 and relay-2 paused, cart lines are slow", func() error {
		for _, r := range s.Relays {
			if err := r.Pause(); err != nil {
				return err
			}
		}
		err := scenario.Concurrently(8, func(i int) error {
			for range 3 {
				batch := s.Connection.AddToCart(d, 40)
				slices.Reverse(batch)
				if err := s.Connection.SendUntilAccepted(ctx, s.Edge(1+i%2), batch); err != nil {
					return err
				}
			}
			return nil
		})
		for _, r := range s.Relays {
			err = errors.Join(err, r.Resume())
		}
		// It does not wait until they are done: relays in a deadlock may never be.
		return errors.Join(err, backoff.Sleep(ctx, 8*time.Second),
			s.Exec(ctx, `DROP TRIGGER slow ON relay.cart_lines`))
	})
	for _, r := range s.Relays {
		err = errors.Join(err, s.Restart(ctx, r))
	}
	return err
}
