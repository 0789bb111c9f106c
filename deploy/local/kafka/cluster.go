package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Cluster are several brokers that replicate all topics to each other; a record is acknowledged when most of
// them have it.
type Cluster struct {
	configs []Config

	mu      sync.Mutex
	brokers []*Broker
}

// StartCluster starts one broker per configuration at the same time, since they need each other, and returns
// when all are ready.
func StartCluster(ctx context.Context, configs []Config) (*Cluster, error) {
	Join(configs)
	c := &Cluster{configs: configs, brokers: make([]*Broker, len(configs))}
	errs := make([]error, len(configs))
	var all sync.WaitGroup
	for i := range configs {
		all.Go(func() { errs[i] = c.Start(ctx, i) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Join makes brokers a cluster, unless there is only one.
func Join(configs []Config) {
	if len(configs) < 2 {
		return
	}
	var voters []string
	for i := range configs {
		voters = append(voters, fmt.Sprintf("%d@127.0.0.1:%d", i+1, configs[i].ControllerPort))
	}
	for i := range configs {
		configs[i].Node, configs[i].Voters = i+1, voters
	}
}

// Start starts a broker that was killed, on its port and data.
func (c *Cluster) Start(ctx context.Context, i int) error {
	b, err := Start(ctx, c.configs[i])
	if err != nil {
		return fmt.Errorf("broker %d: %w", i+1, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.brokers[i] = b
	return nil
}

// Kill ends a broker at once.
func (c *Cluster) Kill(i int) {
	c.mu.Lock()
	b := c.brokers[i]
	c.brokers[i] = nil
	c.mu.Unlock()
	if b != nil {
		b.Kill()
	}
}

// Addrs is where the brokers listen, separated by commas.
func (c *Cluster) Addrs() string {
	var all []string
	for _, cfg := range c.configs {
		all = append(all, fmt.Sprintf("127.0.0.1:%d", cfg.Port))
	}
	return strings.Join(all, ",")
}

// Close kills all brokers: the last one could not stop in order without the others.
func (c *Cluster) Close() error {
	for i := range c.configs {
		c.Kill(i)
	}
	return nil
}
