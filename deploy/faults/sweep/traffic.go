package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/faults/recording"
	"storefront.internal/deploy/faults/scenario"
	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/shared/backoff"
)

// traffic makes calls that reach all failpoints.
type traffic struct {
	*scenario.Env
	policy RetryPolicy
	pass   int
	redis  *redis.Client
}

// makePass sends signals, erases a visitor, delivers and reads an item, issues and revokes a key, changes a
// product at the provider, installs its shop and opens a bootstrap run.
func (t *traffic) makePass(ctx context.Context) error {
	t.pass++
	d, err := t.Connection.Recommend(ctx, t.Edge(2)) // it is not killed
	if err != nil {
		return err
	}
	batch := t.Connection.AddToCart(d, 3)
	if end := t.Connection.Send(ctx, t.Edge(1), batch); end.Kind != history.OK {
		if err := t.resend(ctx, batch); err != nil {
			return err
		}
	}
	return errors.Join(t.visitor(ctx, d), t.item(ctx), t.key(ctx), t.entity(ctx))
}

// resend sends a batch again according to the policy.
func (t *traffic) resend(ctx context.Context, batch []recording.Signal) error {
	switch t.policy {
	case Same:
		return t.Connection.SendUntilAccepted(ctx, t.Edge(1), batch)
	case Other:
		return t.Connection.SendUntilAccepted(ctx, t.Edge(2), batch)
	}
	return nil
}

// retryControl calls control until it succeeds, unless the policy is Never.
func (t *traffic) retryControl(ctx context.Context, call func() error) error {
	for {
		err := call()
		if err == nil || t.policy == Never {
			return nil
		}
		if e := backoff.Sleep(ctx, 200*time.Millisecond); e != nil {
			return errors.Join(e, err)
		}
	}
}

// visitor sends a signal and requests the erasure of its visitor.
func (t *traffic) visitor(ctx context.Context, decision string) error {
	name := fmt.Sprintf("vis_erased-%d", t.pass)
	t.Connection.SendOfVisitor(ctx, t.Edge(2), decision, name)
	return t.retryControl(ctx, func() error { return t.Connection.EraseVisitor(ctx, name) })
}

// item delivers a product and reads it from an edge that does not find it in Redis.
func (t *traffic) item(ctx context.Context) error {
	item := ""
	err := t.retryControl(ctx, func() (err error) {
		item, err = t.Connection.Observe(ctx, fmt.Sprintf("p-%d", t.pass), int64(t.pass),
			fmt.Sprintf(`{"turn": %d}`, t.pass))
		return err
	})
	if err != nil || item == "" {
		return err
	}
	if err := t.redis.Del(ctx, "sf:item:"+t.Connection.ID+":"+item).Err(); err != nil {
		return err
	}
	t.Connection.GetItem(ctx, t.Edge(1), item)
	return nil
}

// key issues and revokes a key.
func (t *traffic) key(ctx context.Context) error {
	var key client.Key
	err := t.retryControl(ctx, func() (err error) {
		key, err = t.Connection.IssueKey(ctx)
		return err
	})
	if err != nil || key.APIKeyID == "" {
		return err
	}
	return t.retryControl(ctx, func() error { return t.Connection.RevokeKey(ctx, key) })
}

// entity changes a product at the provider, installs the shop again, and opens a bootstrap run.
func (t *traffic) entity(ctx context.Context) error {
	name := fmt.Sprintf("turn %d of %s", t.pass, t.Connection.ID)
	err := t.retryControl(ctx, func() error { return t.Merchant.Rename(ctx, t.Env, name) })
	return errors.Join(err,
		t.retryControl(ctx, func() error { return t.Merchant.Install(ctx, t.Env) }),
		t.retryControl(ctx, func() error {
			_, err := t.API().OpenBootstrap(ctx, t.Merchant.Connection)
			return err
		}))
}

// expireLeases returns statements that age the leases of control by a minute.
func expireLeases() []string {
	return []string{
		"UPDATE control.installations SET due_at = due_at - interval '1 minute'",
		"UPDATE control.river_job SET state = 'available', attempted_at = NULL, scheduled_at = now() " +
			"WHERE state = 'running'",
		"DELETE FROM control.river_leader",
	}
}

// awaitLastBootstrap opens a last bootstrap run after the installation, because webhooks may be lost, and
// waits for it.
func (t *traffic) awaitLastBootstrap(ctx context.Context) error {
	if _, err := t.API().AwaitCatalog(ctx, t.Merchant.Connection); err != nil {
		return err
	}
	run, err := t.API().OpenBootstrap(ctx, t.Merchant.Connection)
	if err != nil {
		return err
	}
	_, err = t.API().AwaitCompletion(ctx, t.Merchant.Connection, run)
	return err
}

// victim returns the process of a program that dies.
func victim(s *scenario.Env, program string) *stack.Process {
	switch program {
	case scenario.Edge:
		return s.Edges[0]
	case scenario.Relay:
		return s.Relays[0]
	}
	return s.Control
}
