// Package topology is the deployment of a fault run: PostgreSQL, Redis, one or three brokers, two edges, two
// relays, control, the demo engine and the fake provider, with a link between each two of them. PostgreSQL
// and Kafka can get small disks of their own, which can be filled.
package topology

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/deploy/stack/link"
)

// Config of a topology.
type Config struct {
	Project    project.Project
	Bin        string // folder of the binaries under test
	Dir        string // of data and logs; every user may pass through it
	SmallDisks bool   // for PostgreSQL and Kafka, where this process may mount
	Brokers    int    // of Kafka
	Logf       func(format string, args ...any)
}

// Topology is a running deployment.
type Topology struct {
	*stack.Deployment
	Edges, Relays             []*stack.Process
	Control, Engine, Provider *stack.Process
	PostgresDisk, KafkaDisk   *Disk

	dir string
}

const (
	// ShopID is the shop at the fake provider.
	ShopID = "1001001"
	// Products is the number of its products.
	Products = 60
	// RelayGroup is the consumer group of the relays.
	RelayGroup = "storefront-relay"
	// InFlight is the number of requests that the relays may have in flight to the engine: two relays with
	// four workers.
	InFlight = 8

	startTimeout = 2 * time.Minute
)

// Start starts everything and waits until it is ready. On an error it stops what it started.
func Start(ctx context.Context, cfg Config) (_ *Topology, err error) {
	x := &Topology{dir: cfg.Dir, Deployment: stack.New(ctx, stack.Config{
		Settings: settings(cfg), Supervised: true, Links: true, LogDir: filepath.Join(cfg.Dir,
			"logs"), Say: cfg.Logf,
	})}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close())
		}
	}()
	if err := os.MkdirAll(x.LogDir, 0o755); err != nil {
		return nil, err
	}
	if x.PostgresDisk, err = newDisk(filepath.Join(cfg.Dir, "postgres"), cfg.SmallDisks); err != nil {
		return nil, err
	}
	if x.KafkaDisk, err = newDisk(filepath.Join(cfg.Dir, "kafka"), cfg.SmallDisks); err != nil {
		return nil, err
	}
	err = x.StartStores(ctx, stack.Stores{
		Project: cfg.Project, Dir: cfg.Dir, PostgresDir: filepath.Join(x.PostgresDisk.Path,
			"home"), KafkaDir: x.KafkaDisk.Path,
		PostgresSettings: []string{"max_wal_size=512MB", "checkpoint_timeout=60s"},
		KeepRedis:        true, // only the faults that say so make Redis lose its data
		Brokers:          cfg.Brokers,
		KafkaClients:     []string{"edge-1", "edge-2", "relay-1", "relay-2"},
	})
	if err != nil {
		return nil, err
	}
	if err := x.Settings.Prepare(ctx); err != nil {
		return nil, err
	}
	return x, x.startServices(ctx, cfg.SmallDisks)
}

func settings(cfg Config) stack.Settings {
	return stack.Settings{
		Bin: cfg.Bin, ErrorsBase: "https://errors.example/", DecisionKeys: "k1:" + strings.Repeat("QUJD", 11),
		KeysetFile: filepath.Join(cfg.Dir, "keyset.json"), ConnectorToken: strings.Repeat("connector-", 4),
		BackendToken: strings.Repeat("backend-", 5), EngineToken: strings.Repeat("engine-", 5),
		Pepper: strings.Repeat("pepper-",
			5), EngineSecret: "engine-secret-1", AppID: "4242", AppSecret: "fault-app-secret",
	}
}

func (x *Topology) startServices(ctx context.Context, longRun bool) (err error) {
	const partitions = "8"
	if x.Engine, err = x.Deployment.Engine("control"); err != nil {
		return err
	}
	x.Provider, err = x.Deployment.Provider("control", "FAKEPROVIDER_THROTTLE=off",
		fmt.Sprintf("FAKEPROVIDER_PRODUCTS=%d", Products),
		"FAKEPROVIDER_STORES="+client.ConnectorProvider+":"+ShopID)
	if err != nil {
		return err
	}
	relayEnv := []string{"RELAY_KAFKA_TOPIC_PARTITIONS=" + partitions, "RELAY_BACKOFF_MIN=100ms",
		"RELAY_BACKOFF_MAX=3s",
		"RELAY_ENGINE_TIMEOUT=2s", "RELAY_LEASE=5s"}
	if !longRun { // a short run has no time to wait half a minute for Decisions that were never recorded
		relayEnv = append(relayEnv, "RELAY_DECISION_WAIT=3s")
	}
	for _, name := range []string{"relay-1", "relay-2"} {
		p, err := x.Relay(name, relayEnv...)
		if err != nil {
			return err
		}
		x.Relays = append(x.Relays, p)
	}
	if x.Control, err = x.Deployment.Control("control"); err != nil {
		return err
	}
	for i, name := range []string{"edge-1", "edge-2"} {
		p, err := x.Edge(name, "EDGE_KAFKA_TOPIC_PARTITIONS="+partitions, "EDGE_REPLICAS=2",
			"EDGE_DRAIN_DELAY=200ms", fmt.Sprintf("EDGE_KAFKA_RECORD_VERSION=%d", 1+i))
		if err != nil {
			return err
		}
		x.Edges = append(x.Edges, p)
	}
	return x.Start(ctx, startTimeout,
		append([]*stack.Process{x.Engine, x.Provider}, x.Services()...)...)
}

// Close stops everything and unmounts the disks. The folder remains.
func (x *Topology) Close() error {
	err := x.Deployment.Close(20 * time.Second)
	for _, d := range []*Disk{x.PostgresDisk, x.KafkaDisk} {
		if d != nil {
			err = errors.Join(err, d.close())
		}
	}
	return err
}

// Services returns edges, relays and control.
func (x *Topology) Services() []*stack.Process {
	return append(append(append([]*stack.Process{}, x.Edges...), x.Relays...), x.Control)
}

// LinksTo returns the links over which services reach a process.
func (x *Topology) LinksTo(name string) []*link.Link {
	var all []*link.Link
	for _, l := range x.Links() {
		if from, to, _ := strings.Cut(l.Name, ">"); to == name && from != "clients" {
			all = append(all, l)
		}
	}
	return all
}

// Ready waits until each service is ready.
func (x *Topology) Ready(ctx context.Context) error {
	for _, s := range x.Services() {
		if err := s.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// API returns the internal API, called without a link.
func (x *Topology) API() client.Internal { return x.Internal(x.Control) }

// ClearRedis deletes the data of Redis, which must not be running.
func (x *Topology) ClearRedis() error {
	return os.RemoveAll(filepath.Join(x.dir, "redis", "appendonlydir"))
}
