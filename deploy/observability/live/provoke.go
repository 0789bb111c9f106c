package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"

	"storefront.internal/deploy/faults/recording"
	"storefront.internal/deploy/faults/scenario"
)

// provoker causes a fault, waits for its alert, and ends the fault.
type provoker struct {
	*scenario.Env
	prom *prometheus
	logf func(string, ...any)
}

// expect waits until the alert fires and, if end is not nil, until it ends after end.
func (p *provoker) expect(ctx context.Context, alert, cause string, end func() error) error {
	err := p.prom.awaitState(ctx, alert, "firing")
	if err == nil {
		p.logf("%s fired: %s", alert, cause)
	}
	if end == nil {
		return err
	}
	if err = errors.Join(err, end()); err != nil {
		return err
	}
	if err = p.prom.awaitState(ctx, alert, "inactive"); err == nil {
		p.logf("%s ended", alert)
	}
	return err
}

// send sends one signal, which change may modify before.
func (p *provoker) send(ctx context.Context, before func(recording.Signal) error) error {
	d, err := p.Connection.Recommend(ctx, p.Edge(1))
	if err != nil {
		return err
	}
	batch := p.Connection.AddToCart(d, 1)
	if before != nil {
		if err := before(batch[0]); err != nil {
			return err
		}
	}
	return p.Connection.SendUntilAccepted(ctx, p.Edge(1), batch)
}

// rejectCredential lets the engine reject the relays' credential and resumes delivery afterwards.
func (p *provoker) rejectCredential(ctx context.Context) error {
	if err := p.SetEngineBehaviour(ctx, map[string]any{"status": http.StatusUnauthorized}); err != nil {
		return err
	}
	if err := p.send(ctx, nil); err != nil {
		return err
	}
	return p.expect(ctx, "StorefrontDeliveryBlocked", "the engine answers 401", func() error {
		return errors.Join(p.SetEngineBehaviour(ctx, nil), p.API().ResumeDelivery(ctx))
	})
}

// deadLetter lets the engine reject one signal permanently.
func (p *provoker) deadLetter(ctx context.Context) error {
	err := p.send(ctx, func(s recording.Signal) error {
		return p.SetEngineBehaviour(ctx, map[string]any{"reject": []string{s.ID}})
	})
	if err != nil {
		return err
	}
	err = p.expect(ctx, "StorefrontDeadDeliveries", "the engine rejects a signal", nil)
	return errors.Join(err, p.SetEngineBehaviour(ctx, nil))
}

// growLag locks the ledger, so that the sink cannot store the signals of the load.
func (p *provoker) growLag(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.Settings.Database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	const lock = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0; LOCK TABLE " +
		"relay.ledger_digests IN ACCESS EXCLUSIVE MODE"
	if _, err := conn.Exec(ctx, lock); err != nil {
		return fmt.Errorf("lock the ledger: %w", err)
	}
	return p.expect(ctx, "StorefrontConsumerLagGrowing", "the sink cannot write", func() error {
		_, err := conn.Exec(ctx, "ROLLBACK")
		return err
	})
}
