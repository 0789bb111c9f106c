package live

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
)

// provoker makes things go wrong on the running stack, waits for the alert, and mends them.
type provoker struct {
	client *client
	prom   *prometheus
	env    env
	say    func(string, ...any)
}

func (x *provoker) behave(ctx context.Context, how object) error {
	_, status, err := x.client.call(ctx, http.MethodPost, x.env["ENGINE_URL"]+"/debug/behaviour", "", how)
	if err == nil && status >= http.StatusMultipleChoices {
		err = fmt.Errorf("engine's behaviour: %d", status)
	}
	return err
}

// shop sends one signal.
func (x *provoker) shop(ctx context.Context) error {
	decision, item, err := x.client.recommend(ctx)
	if err == nil {
		_, err = x.client.signals(ctx, decision, item, 1)
	}
	return err
}

// blocked has the engine refuse the relay's credential, and resumes delivery afterwards.
func (x *provoker) blocked(ctx context.Context) error {
	const alert = "StorefrontDeliveryBlocked"
	if err := x.behave(ctx, object{"interactions": object{"status": http.StatusUnauthorized}}); err != nil {
		return err
	}
	if err := x.shop(ctx); err != nil {
		return err
	}
	if err := x.prom.awaitState(ctx, alert, "firing"); err != nil {
		return err
	}
	if err := x.behave(ctx, object{}); err != nil {
		return err
	}
	out, status, err := x.client.call(ctx, http.MethodPost, x.env["INTERNAL_BASE_URL"]+"/internal/v1/brain-interactions/resume", x.env["CONNECTOR_TOKEN"], nil)
	if err != nil || status != http.StatusAccepted {
		return fmt.Errorf("resume: %d %s: %w", status, out, err)
	}
	x.say("%s fired on a 401 of the engine", alert)
	if err := x.prom.awaitState(ctx, alert, "inactive"); err != nil {
		return err
	}
	x.say("%s ended after resume_delivery", alert)
	return nil
}

// dead has the engine reject one signal for good.
func (x *provoker) dead(ctx context.Context) error {
	const alert = "StorefrontDeadDeliveries"
	decision, item, err := x.client.recommend(ctx)
	if err != nil {
		return err
	}
	next := fmt.Sprintf("sig_live%s-%d", x.client.run, x.client.sent.Load()+1)
	if err := x.behave(ctx, object{"interactions": object{"reject": []string{next}}}); err != nil {
		return err
	}
	if sent, err := x.client.signals(ctx, decision, item, 1); err != nil || sent != next {
		return fmt.Errorf("sent %s, not %s: %w", sent, next, err)
	}
	if err := x.prom.awaitState(ctx, alert, "firing"); err != nil {
		return err
	}
	x.say("%s fired on a rejected signal", alert)
	return x.behave(ctx, object{})
}

// lag holds the ledger's lock, so that the sink stands still while signals come in.
func (x *provoker) lag(ctx context.Context) error {
	const alert = "StorefrontConsumerLagGrowing"
	conn, err := pgx.Connect(ctx, x.env["DATABASE_URL"])
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0; LOCK TABLE relay.ledger IN ACCESS EXCLUSIVE MODE"); err != nil {
		return fmt.Errorf("hold the ledger: %w", err)
	}
	loading, stop := context.WithTimeout(ctx, 3*time.Minute)
	done := make(chan struct{})
	go func() {
		x.client.load(loading, 8)
		close(done)
	}()
	fired := x.prom.awaitState(ctx, alert, "firing")
	stop()
	<-done
	if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
		return err
	}
	if fired != nil {
		return fired
	}
	x.say("%s fired while the sink could not write", alert)
	if err := x.prom.awaitState(ctx, alert, "inactive"); err != nil {
		return err
	}
	x.say("%s ended after the sink could write", alert)
	return nil
}
