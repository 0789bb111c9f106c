package topology

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"storefront.internal/deploy/local/backing"
	"storefront.internal/deploy/local/kafka"
	"storefront.internal/deploy/local/postgres"
	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/local/redis"
	"storefront.internal/deploy/local/services"
)

// kafkaClients have a listener of the broker each: a broker tells its clients where to find it, and each is to find it behind a
// link of its own.
func kafkaClients() []string { return []string{"edge-1", "edge-2", "relay-1", "relay-2"} }

// startStores starts PostgreSQL, Redis and the broker side by side.
func (x *Topology) startStores(ctx, life context.Context) error {
	pg, err := x.postgres(life)
	if err != nil {
		return err
	}
	re, err := x.redis(life)
	if err != nil {
		return err
	}
	ka, err := x.kafka(ctx, life)
	if err != nil {
		return err
	}
	x.Postgres, x.Redis, x.Kafka = pg, re, ka
	x.units = append(x.units, pg, re, ka)
	for _, u := range x.units {
		u.Want()
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for _, u := range x.units {
		if err := u.Running(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (x *Topology) postgres(life context.Context) (*Unit, error) {
	bin, _, err := backing.PostgresBinaries(life, x.Project, x.Say)
	if err != nil {
		return nil, err
	}
	if x.PostgresDisk, err = newDisk(x.path("postgres"), x.Small); err != nil {
		return nil, err
	}
	home, err := postgres.Home(filepath.Join(x.PostgresDisk.Path, "home"))
	if err != nil {
		return nil, err
	}
	log, err := x.log("postgres")
	if err != nil {
		return nil, err
	}
	port, err := x.ports.take()
	if err != nil {
		return nil, err
	}
	x.direct.postgres = project.Loopback(port)
	cfg := postgres.Config{Bin: bin, Dir: home, Port: port, Log: log, Settings: []string{"max_wal_size=512MB", "checkpoint_timeout=60s"}}
	return newUnit(life, "postgres", x.Say, func(ctx context.Context) (*process.Process, error) {
		s, err := postgres.Start(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return s.Process, nil
	}), nil
}

func (x *Topology) redis(life context.Context) (*Unit, error) {
	path, found := redis.Find()
	if !found {
		return nil, errors.New("a fault run needs a real redis-server on PATH")
	}
	dir := x.path("redis")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	log, err := x.log("redis")
	if err != nil {
		return nil, err
	}
	port, err := x.ports.take()
	if err != nil {
		return nil, err
	}
	x.direct.redis = project.Loopback(port)
	// Kept: a killed Redis comes back with what it answered, so that only faults that say so make it forget.
	cfg := redis.Config{Path: path, Dir: dir, Port: port, Keep: true, Log: log}
	return newUnit(life, "redis", x.Say, func(ctx context.Context) (*process.Process, error) {
		s, err := redis.Start(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return s.Process, nil
	}), nil
}

// RedisForgets throws Redis's data away; it must be down.
func (x *Topology) RedisForgets() error {
	return os.RemoveAll(filepath.Join(x.path("redis"), "appendonlydir"))
}

func (x *Topology) kafka(ctx, life context.Context) (_ *Unit, err error) {
	libs, err := kafka.Fetch(ctx, filepath.Join(x.Project.Cache(), "kafka"))
	if err != nil {
		return nil, err
	}
	if x.KafkaDisk, err = newDisk(x.path("kafka"), x.Small); err != nil {
		return nil, err
	}
	log, err := x.log("kafka")
	if err != nil {
		return nil, err
	}
	cfg := kafka.Config{Libs: libs, Dir: x.KafkaDisk.Path, Log: log}
	if cfg.Port, err = x.ports.take(); err != nil {
		return nil, err
	}
	if cfg.ControllerPort, err = x.ports.take(); err != nil {
		return nil, err
	}
	x.direct.kafka = project.Loopback(cfg.Port)
	for _, client := range kafkaClients() {
		port, err := x.ports.take()
		if err != nil {
			return nil, err
		}
		advertised, err := x.wire(client, "kafka", project.Loopback(port))
		if err != nil {
			return nil, err
		}
		name := strings.ToUpper(strings.ReplaceAll(client, "-", ""))
		cfg.Doors = append(cfg.Doors, kafka.Door{Name: name, Port: port, Advertised: advertised})
	}
	return newUnit(life, "kafka", x.Say, func(ctx context.Context) (*process.Process, error) {
		b, err := kafka.Start(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return b.Process, nil
	}), nil
}

// prepareDatabase makes the database, brings it to the present schema by the real command, and makes the login roles.
func (x *Topology) prepareDatabase(ctx context.Context) error {
	server := fmt.Sprintf("postgres://%s@%s/postgres?sslmode=disable", postgres.Superuser, x.direct.postgres)
	if err := services.EnsureDatabase(ctx, server, database); err != nil {
		return err
	}
	var err error
	if x.settings.Database, err = services.WithDatabase(server, database); err != nil {
		return err
	}
	if err := x.settings.EnsureKeyset(ctx); err != nil {
		return err
	}
	if _, err := x.settings.Once(ctx, x.settings.Migrate(), "migrate", "up"); err != nil {
		return err
	}
	return services.EnsureLogins(ctx, x.settings.Database, "")
}
