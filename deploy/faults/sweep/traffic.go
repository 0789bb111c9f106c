package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/faults/stage"
	"storefront.internal/deploy/faults/topology"
	"storefront.internal/deploy/local/services"
)

// traffic makes calls that lead past every crash point.
type traffic struct {
	*stage.Stage
	policy Policy
	turn   int
	redis  *redis.Client
}

// another is one turn: signals, a visitor who is forgotten, an item, a key, a change at the provider, a load, an installation.
func (t *traffic) another(ctx context.Context) error {
	t.turn++
	d, err := t.Shop.Recommend(ctx, t.Edge(2)) // which nobody kills
	if err != nil {
		return err
	}
	batch := t.Shop.Adds(d, 3)
	if end := t.Shop.Send(ctx, t.Edge(1), batch); end.Kind != history.OK {
		if err := t.again(ctx, batch); err != nil {
			return err
		}
	}
	return errors.Join(t.visitor(ctx, d), t.item(ctx), t.key(ctx), t.entity(ctx))
}

// again does what the policy says about signals.
func (t *traffic) again(ctx context.Context, batch []history.Sent) error {
	switch t.policy {
	case Same:
		return t.Shop.Deliver(ctx, t.Edge(1), batch)
	case Other:
		return t.Shop.Deliver(ctx, t.Edge(2), batch)
	}
	return nil
}

// tried calls control until it answers, unless the client never calls again.
func (t *traffic) tried(ctx context.Context, call func() error) error {
	for {
		err := call()
		if err == nil || t.policy == Never {
			return nil
		}
		if e := topology.Sleep(ctx, 200*time.Millisecond); e != nil {
			return errors.Join(e, err)
		}
	}
}

// visitor comes once and is forgotten.
func (t *traffic) visitor(ctx context.Context, decision string) error {
	name := fmt.Sprintf("vis_forgotten-%d", t.turn)
	t.Shop.Visit(ctx, t.Edge(2), decision, name)
	return t.tried(ctx, func() error { return t.Shop.Forget(ctx, name) })
}

// item delivers a product and reads it from an edge that finds nothing in Redis.
func (t *traffic) item(ctx context.Context) error {
	item := ""
	err := t.tried(ctx, func() (err error) {
		item, err = t.Shop.Observe(ctx, stage.PlaceOf(t.Control), fmt.Sprintf("p-%d", t.turn), int64(t.turn), fmt.Sprintf(`{"turn": %d}`, t.turn))
		return err
	})
	if err != nil || item == "" {
		return err
	}
	if err := t.redis.Del(ctx, "sf:item:"+t.Shop.Connection+":"+item).Err(); err != nil {
		return err
	}
	t.Shop.Read(ctx, t.Edge(1), item)
	return nil
}

// key issues a key and revokes it.
func (t *traffic) key(ctx context.Context) error {
	var key services.Key
	err := t.tried(ctx, func() (err error) {
		key, err = t.Shop.Issue(ctx)
		return err
	})
	if err != nil || key.APIKeyID == "" {
		return err
	}
	return t.tried(ctx, func() error { return t.Shop.Revoke(ctx, key) })
}

// entity changes a product at the provider and tells of it, installs the store once more, and opens a load.
func (t *traffic) entity(ctx context.Context) error {
	call := t.Recorder.Invoke(history.Event{Op: history.Webhook, Edge: "control", Connection: t.Merchant.Connection})
	name := fmt.Sprintf("turn %d of %s", t.turn, t.Shop.Connection)
	err := t.tried(ctx, func() error { return t.Merchant.Change(ctx, t.Stage, name) })
	t.Recorder.End(call, history.Event{Op: history.Webhook, Kind: history.Info})
	return errors.Join(err,
		t.tried(ctx, func() error { return t.Merchant.Install(ctx, t.Stage) }),
		t.tried(ctx, func() error {
			_, err := t.API().Bootstrap(ctx, t.Merchant.Connection)
			return err
		}))
}

// passes makes the database look as if a minute had gone by since control died: what was lent to it lapses.
func passes() []string {
	return []string{
		"UPDATE control.installations SET lease_until = lease_until - interval '1 minute', due_at = due_at - interval '1 minute'",
		"UPDATE control.bootstrap_runs SET resume_at = resume_at - interval '2 minutes'",
		"UPDATE control.river_job SET state = 'available', attempted_at = NULL, scheduled_at = now() WHERE state = 'running'",
		"DELETE FROM control.river_leader",
	}
}

// loaded opens a last load, whatever happened to the notifications, and waits until it is done and the installation too.
func (t *traffic) loaded(ctx context.Context) error {
	if _, err := t.API().Loaded(ctx, t.Merchant.Connection); err != nil {
		return err
	}
	run, err := t.API().Bootstrap(ctx, t.Merchant.Connection)
	if err != nil {
		return err
	}
	return stage.Until(ctx, "the last load", func() (bool, error) {
		r, err := t.API().Run(ctx, t.Merchant.Connection, run)
		if err == nil && r.State == "failed" {
			err = errors.New("the last load failed: " + r.Reason)
		}
		return r.State == "completed", err
	})
}

// victim is the process of a program that dies.
func victim(s *stage.Stage, program string) *topology.Service {
	switch program {
	case stage.Edge:
		return s.Edges[0]
	case stage.Relay:
		return s.Relays[0]
	}
	return s.Control
}
