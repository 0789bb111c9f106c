package mutants

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"storefront.internal/deploy/faults/stage"
	"storefront.internal/deploy/faults/topology"
	"storefront.internal/shared/crashpoint"
)

// staleFill: an edge has read an item and stands still before it tells Redis; the item changes meanwhile.
func staleFill(ctx context.Context, s *stage.Stage) error {
	at := stage.PlaceOf(s.Control)
	item, err := s.Shop.Observe(ctx, at, "p-1", 1, `{"n":1}`)
	if err != nil {
		return err
	}
	if err := s.Arm(ctx, s.Edges[0], crashpoint.ItemLoaded, "stop"); err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: s.RedisAddr()})
	defer func() { _ = client.Close() }()
	key := "sf:item:" + s.Shop.Connection + ":" + item
	revision := func(want string) func() (bool, error) {
		return func() (bool, error) {
			text, err := client.GetRange(ctx, key, 0, 1).Result()
			return text == want, err
		}
	}
	if err := stage.Until(ctx, "the first push of the item", revision("1\n")); err != nil {
		return err
	}
	if err := client.Del(ctx, key).Err(); err != nil { // as its life ends
		return err
	}
	return s.Fault("N2", "edge-1 stopped with an item in its hands", func() error {
		go s.Shop.Read(ctx, s.Edge(1), item)
		err := stage.Until(ctx, "stop of edge-1", func() (bool, error) { return s.Edges[0].Stopped(), nil })
		if err == nil {
			_, err = s.Shop.Observe(ctx, at, "p-1", 2, `{"n":2}`)
		}
		if err == nil {
			err = stage.Until(ctx, "the second push of the item", revision("2\n"))
		}
		return errors.Join(err, s.Edges[0].Continue(), topology.Sleep(ctx, 2*time.Second))
	})
}

// redisBehind is what a campaign found: Redis is full when an item changes, and an edge that answered the newer version begins
// anew; then once more, where Redis comes back with what it held before.
func redisBehind(ctx context.Context, s *stage.Stage) error {
	at := stage.PlaceOf(s.Control)
	item, err := s.Shop.Observe(ctx, at, "p-1", 1, `{"n":1}`)
	if err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: s.RedisAddr()})
	defer func() { _ = client.Close() }()
	key := "sf:item:" + s.Shop.Connection + ":" + item
	old := ""
	if err := stage.Until(ctx, "the push of the item", func() (bool, error) {
		old, err = client.Get(ctx, key).Result()
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		return old != "", err
	}); err != nil {
		return err
	}
	answered := func(revision int64) error {
		return stage.Until(ctx, "the item at edge-1", func() (bool, error) { return s.Shop.Read(ctx, s.Edge(1), item).Revision >= revision, nil })
	}
	begins := func() error {
		err := s.Restart(ctx, s.Edges[0])
		s.Shop.Read(ctx, s.Edge(1), item)
		return err
	}
	if err := answered(1); err != nil {
		return err
	}
	err = s.Fault("N8", "maxmemory 1, noeviction", func() error {
		err := client.ConfigSet(ctx, "maxmemory", "1").Err()
		if err == nil {
			_, err = s.Shop.Observe(ctx, at, "p-1", 2, `{"n":2}`)
		}
		if err == nil {
			err = errors.Join(answered(2), begins())
		}
		return errors.Join(err, client.ConfigSet(ctx, "maxmemory", "0").Err())
	})
	if err != nil {
		return err
	}
	if err := s.Rest(ctx); err != nil { // the push is made up for
		return err
	}
	return s.Fault("N8", "an older Redis comes back", func() error {
		return errors.Join(answered(2), client.Set(ctx, key, old, time.Hour).Err(), begins())
	})
}
