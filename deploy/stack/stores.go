package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"storefront.internal/deploy/local/backing"
	"storefront.internal/deploy/local/kafka"
	"storefront.internal/deploy/local/postgres"
	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/local/redis"
)

// Stores says how StartStores runs a real PostgreSQL, Redis and Kafka of the deployment's own.
type Stores struct {
	Project          project.Project
	Dir              string // of the data; every user may pass through it
	PostgresDir      string // "": below Dir
	KafkaDir         string // "": below Dir
	PostgresSettings []string
	// KeepRedis lets a Redis that was killed come back with its data.
	KeepRedis bool
	// Brokers is the number of Kafka's brokers; 0 is one. Several replicate all topics to each other.
	Brokers int
	// KafkaClients are the processes that reach each broker by a listener and a link of their own: a broker
	// tells its clients where to find it, so a link needs a listener that advertises it.
	KafkaClients []string
}

// ErrUnavailable says that a store cannot run on this machine.
var ErrUnavailable = errors.New("not installed here")

// StartStores starts the stores and points the deployment's settings at them.
func (d *Deployment) StartStores(ctx context.Context, s Stores) error {
	for _, add := range []func(context.Context, Stores) error{d.addPostgres, d.addRedis, d.addKafka} {
		if err := add(ctx, s); err != nil {
			return err
		}
	}
	all := append([]*Process{d.Postgres, d.Redis}, d.Brokers...)
	for _, p := range all {
		p.RequestStart()
	}
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	for _, p := range all {
		err := p.await(ctx, func() bool { return p.child != nil || p.failed != nil && !p.supervised })
		if err = errors.Join(err, p.failed); err != nil {
			return err
		}
	}
	return nil
}

// store makes a process of a server that knows itself when it is ready.
func (d *Deployment) store(name string, sig syscall.Signal,
	start func(context.Context) (*process.Process, error)) *Process {
	return d.adopt(&Process{Name: name, supervised: d.Supervised, say: d.Say, stopSignal: sig,
		launch: func(ctx context.Context, _ string, _ []string) (*process.Process,
			error) {
			return start(ctx)
		}})
}

func (d *Deployment) addPostgres(ctx context.Context, s Stores) error {
	dir := s.PostgresDir
	if dir == "" {
		dir = filepath.Join(s.Dir, "postgres")
	}
	home, err := postgres.Home(dir)
	if err != nil {
		return err
	}
	binaries, err := backing.PostgresBinaries(ctx, s.Project, home, d.Say)
	if err != nil {
		return err
	}
	port, err := project.ClaimPort()
	if err != nil {
		return err
	}
	log, err := d.openLog("postgres")
	if err != nil {
		return err
	}
	cfg := postgres.Config{Binaries: binaries, Dir: home, Port: port, Log: log, Settings: s.PostgresSettings}
	d.Settings.Database = fmt.Sprintf("postgres://%s@%s/storefront?sslmode=disable", postgres.Superuser,
		project.Loopback(port))
	d.Postgres = d.store("postgres", syscall.SIGINT, func(ctx context.Context) (*process.Process, error) {
		server, err := postgres.Start(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return server.Process, nil
	})
	return nil
}

func (d *Deployment) addRedis(_ context.Context, s Stores) error {
	path, found := redis.Find()
	if !found {
		return fmt.Errorf("redis-server: %w", ErrUnavailable)
	}
	dir := filepath.Join(s.Dir, "redis")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	port, err := project.ClaimPort()
	if err != nil {
		return err
	}
	log, err := d.openLog("redis")
	if err != nil {
		return err
	}
	cfg := redis.Config{Path: path, Dir: dir, Port: port, Keep: s.KeepRedis, Log: log}
	d.Settings.RedisAddr = project.Loopback(port)
	d.Redis = d.store("redis", syscall.SIGTERM, func(ctx context.Context) (*process.Process, error) {
		server, err := redis.Start(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return server.Process, nil
	})
	return nil
}

// brokerName is the name of broker i of n.
func brokerName(i, n int) string {
	if n == 1 {
		return kafkaName
	}
	return fmt.Sprintf("%s-%d", kafkaName, i+1)
}

func (d *Deployment) addKafka(ctx context.Context, s Stores) error {
	libs, err := kafka.Fetch(ctx, filepath.Join(s.Project.Cache(), "kafka"))
	if err != nil {
		return errors.Join(ErrUnavailable, err)
	}
	if s.KafkaDir == "" {
		s.KafkaDir = filepath.Join(s.Dir, "kafka")
	}
	configs := make([]kafka.Config, max(1, s.Brokers))
	for i := range configs {
		configs[i].Libs = libs
		if err := d.configureBroker(&configs[i], s, brokerName(i, len(configs))); err != nil {
			return err
		}
	}
	kafka.Join(configs)
	sig := syscall.SIGTERM
	if len(configs) > 1 {
		sig = syscall.SIGKILL // the last broker could not stop in order without the others
	}
	var addresses []string
	for i, cfg := range configs {
		addresses = append(addresses, project.Loopback(cfg.Port))
		d.Brokers = append(d.Brokers, d.store(brokerName(i, len(configs)), sig,
			func(ctx context.Context) (*process.Process, error) {
				broker, err := kafka.Start(ctx, cfg)
				if err != nil {
					return nil, err
				}
				return broker.Process, nil
			}))
	}
	d.Settings.KafkaBrokers = strings.Join(addresses, ",")
	return nil
}

// configureBroker claims the broker's folder, ports, log and listeners.
func (d *Deployment) configureBroker(cfg *kafka.Config, s Stores, name string) (err error) {
	cfg.Dir = s.KafkaDir
	if name != kafkaName {
		cfg.Dir = filepath.Join(s.KafkaDir, name)
	}
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return err
	}
	for _, port := range []*int{&cfg.Port, &cfg.ControllerPort} {
		if *port, err = project.ClaimPort(); err != nil {
			return err
		}
	}
	if cfg.Log, err = d.openLog(name); err != nil {
		return err
	}
	for _, client := range s.KafkaClients {
		listener, err := d.kafkaListener(client, name)
		if err != nil {
			return err
		}
		cfg.Listeners = append(cfg.Listeners, listener)
	}
	return nil
}

// kafkaListener is a listener of a broker that tells its clients the address of their link.
func (d *Deployment) kafkaListener(client, broker string) (kafka.Listener, error) {
	port, err := project.ClaimPort()
	if err != nil {
		return kafka.Listener{}, err
	}
	l, err := d.OpenLink(client, broker, project.Loopback(port))
	if err != nil {
		return kafka.Listener{}, err
	}
	name := strings.ToUpper(strings.ReplaceAll(client, "-", ""))
	return kafka.Listener{Name: name, Port: port, Advertised: l.Addr()}, nil
}
