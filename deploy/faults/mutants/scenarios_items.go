package mutants

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"storefront.internal/deploy/faults/scenario"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/failpoint"
)

// lateCacheFill pauses an edge after it has read an item and before it writes it to Redis. The item changes
// meanwhile.
func lateCacheFill(ctx context.Context, s *scenario.Env) error {
	item, err := s.Connection.Observe(ctx, "p-1", 1, `{"n":1}`)
	if err != nil {
		return err
	}
	if err := s.ArmFailpoint(ctx, s.Edges[0], failpoint.ItemLoaded, "stop"); err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: s.Settings.RedisAddr})
	defer func() { _ = client.Close() }()
	key := "sf:item:" + s.Connection.ID + ":" + item
	revision := func(want string) func() (bool, error) {
		return func() (bool, error) {
			text, err := client.GetRange(ctx, key, 0, 1).Result()
			return text == want, err
		}
	}
	if err := scenario.Until(ctx, "the first push of the item", revision("1\n")); err != nil {
		return err
	}
	if err := client.Del(ctx, key).Err(); err != nil { // as if it had expired
		return err
	}
	return s.Fault("N2", "edge-1 paused after it has read an item", func() error {
		go s.Connection.GetItem(ctx, s.Edge(1), item)
		err := scenario.Until(ctx, "stop of edge-1", func() (bool, error) { return s.Edges[0].Paused(), nil })
		if err == nil {
			_, err = s.Connection.Observe(ctx, "p-1", 2, `{"n":2}`)
		}
		if err == nil {
			err = scenario.Until(ctx, "the second push of the item", revision("2\n"))
		}
		return errors.Join(err, s.Edges[0].Resume(), backoff.Sleep(ctx, 2*time.Second))
	})
}

// outdatedRedis changes an item while Redis is out of memory, and restarts an edge that has answered the
// newer revision. Then it restores an older value in Redis and restarts the edge again. A campaign found a
// bug this way.
func outdatedRedis(ctx context.Context, s *scenario.Env) error {
	item, err := s.Connection.Observe(ctx, "p-1", 1, `{"n":1}`)
	if err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: s.Settings.RedisAddr})
	defer func() { _ = client.Close() }()
	key := "sf:item:" + s.Connection.ID + ":" + item
	old := ""
	if err := scenario.Until(ctx, "the push of the item", func() (bool, error) {
		old, err = client.Get(ctx, key).Result()
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		return old != "", err
	}); err != nil {
		return err
	}
	answered := func(revision int64) error {
		return scenario.Until(ctx, "the item at edge-1",
			func() (bool, error) {
				return s.Connection.GetItem(ctx, s.Edge(1), item).Revision >= revision,
					nil
			})
	}
	restart := func() error {
		err := s.Restart(ctx, s.Edges[0])
		s.Connection.GetItem(ctx, s.Edge(1), item)
		return err
	}
	if err := answered(1); err != nil {
		return err
	}
	err = s.Fault("N8", "maxmemory 1, noeviction", func() error {
		err := client.ConfigSet(ctx, "maxmemory", "1").Err()
		if err == nil {
			_, err = s.Connection.Observe(ctx, "p-1", 2, `{"n":2}`)
		}
		if err == nil {
			err = errors.Join(answered(2), restart())
		}
		return errors.Join(err, client.ConfigSet(ctx, "maxmemory", "0").Err())
	})
	if err != nil {
		return err
	}
	if err := s.WaitIdle(ctx); err != nil { // now Redis has the newest revision
		return err
	}
	return s.Fault("N8", "Redis has an older value", func() error {
		return errors.Join(answered(2), client.Set(ctx, key, old, time.Hour).Err(), restart())
	})
}
