package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Cluster is several masters that share the slots.
type Cluster struct {
	configs []Config
	servers []*Server
}

const slots = 16384

// StartCluster starts one master per configuration, each with a BusPort, and returns when all slots are
// served.
func StartCluster(ctx context.Context, configs []Config) (c *Cluster, err error) {
	c = &Cluster{configs: configs}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	for _, cfg := range configs {
		s, err := Start(ctx, cfg)
		if err != nil {
			return nil, err
		}
		c.servers = append(c.servers, s)
	}
	for i := range configs {
		if err := c.introduce(ctx, i); err != nil {
			return nil, err
		}
	}
	return c, c.Ready(ctx)
}

// introduce gives a master its share of the slots and makes it known to the first one.
func (c *Cluster) introduce(ctx context.Context, i int) error {
	client := c.client(i)
	defer func() { _ = client.Close() }()
	n := len(c.configs)
	first := c.configs[0]
	return errors.Join(
		client.ClusterAddSlotsRange(ctx, i*slots/n, (i+1)*slots/n-1).Err(),
		client.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", first.Port, first.BusPort).Err(),
	)
}

func (c *Cluster) client(i int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: c.servers[i].Addr(), MaxRetries: -1})
}

// Ready waits until every master knows that all slots are served.
func (c *Cluster) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for i, s := range c.servers {
		client := c.client(i)
		err := s.WaitReady(ctx, func(ctx context.Context) error {
			text, err := client.ClusterInfo(ctx).Result()
			if err == nil && (!strings.Contains(text, "cluster_state:ok") ||
				!strings.Contains(text, fmt.Sprintf("cluster_size:%d", len(c.servers)))) {
				err = fmt.Errorf("master %d: %s", i, text)
			}
			return err
		})
		if err = errors.Join(err, client.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Kill kills a master, whose data is lost.
func (c *Cluster) Kill(i int) { c.servers[i].Kill() }

// Restart starts a master that was killed. It knows its slots and has no keys.
func (c *Cluster) Restart(ctx context.Context, i int) error {
	s, err := Start(ctx, c.configs[i])
	if err != nil {
		return err
	}
	c.servers[i] = s
	return c.Ready(ctx)
}

// Addrs is where the masters listen, separated by commas.
func (c *Cluster) Addrs() string {
	var all []string
	for _, s := range c.servers {
		all = append(all, s.Addr())
	}
	return strings.Join(all, ",")
}

// Close ends all masters.
func (c *Cluster) Close() error {
	for _, s := range c.servers {
		s.Kill()
	}
	return nil
}
