// Package backing brings up PostgreSQL, Redis and Kafka for whoever needs them: addresses that are given win, then what is
// installed here, then a stand-in. It says which one is real, refuses a stand-in where real ones are required, and knows
// nothing of the services that will use them.
package backing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"storefront.internal/deploy/local/kafka"
	"storefront.internal/deploy/local/postgres"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/local/redis"
)

// Origin says where a backing service comes from.
type Origin string

// The three origins.
const (
	Given   Origin = "given by address"
	Started Origin = "real, started here"
	StandIn Origin = "IN-PROCESS STAND-IN"
)

// Service is one backing service that answers.
type Service struct {
	Name   string
	Origin Origin
	Detail string
	close  func() error
}

// Config of a set. Zero ports are chosen freely; a given address is used as it is and never stopped.
type Config struct {
	Project project.Project
	// Dir holds the data of what is started here.
	Dir string
	// Durable waits for the disk, and lets Redis keep its data.
	Durable bool
	// PreferReal starts a real Redis and Kafka where they can be had; PostgreSQL is always real.
	PreferReal bool
	// RequireReal fails where PreferReal would fall back to a stand-in.
	RequireReal bool

	DatabaseURL, RedisAddr, KafkaBrokers                string
	PostgresPort, RedisPort, KafkaPort, KafkaController int
	// Log opens the log of one service.
	Log func(name string) io.Writer
	// Say tells a person what is going on.
	Say func(format string, args ...any)
}

// Set is PostgreSQL, Redis and Kafka, ready.
type Set struct {
	DatabaseURL  string // superuser, database "postgres" unless it was given
	RedisAddr    string
	KafkaBrokers string
	Services     []Service
}

// Open starts what is missing. On an error it stops what it started.
func Open(ctx context.Context, cfg Config) (_ *Set, err error) {
	s := &Set{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	for _, open := range []func(context.Context, Config, *Set) (Service, error){openPostgres, openRedis, openKafka} {
		service, err := open(ctx, cfg, s)
		if err != nil {
			return nil, err
		}
		s.Services = append(s.Services, service)
		cfg.Say("%-11s %s (%s)", service.Name, service.Origin, service.Detail)
	}
	return s, nil
}

// Close stops what Open started, last first.
func (s *Set) Close() error {
	var errs []error
	for i := len(s.Services) - 1; i >= 0; i-- {
		if end := s.Services[i].close; end != nil {
			errs = append(errs, end())
		}
	}
	s.Services = nil
	return errors.Join(errs...)
}

// StandIns tells whether one of the services is not the real thing.
func (s *Set) StandIns() bool {
	for _, service := range s.Services {
		if service.Origin == StandIn {
			return true
		}
	}
	return false
}

func openPostgres(ctx context.Context, cfg Config, s *Set) (Service, error) {
	if cfg.DatabaseURL != "" {
		s.DatabaseURL = cfg.DatabaseURL
		return Service{Name: "PostgreSQL", Origin: Given, Detail: "DATABASE_URL"}, nil
	}
	server, detail, err := startPostgres(ctx, cfg)
	if err != nil {
		return Service{}, err
	}
	s.DatabaseURL = server.URL("postgres")
	return Service{Name: "PostgreSQL", Origin: Started, Detail: detail, close: server.Close}, nil
}

func startPostgres(ctx context.Context, cfg Config) (*postgres.Server, string, error) {
	bin, detail, err := PostgresBinaries(ctx, cfg.Project, cfg.Say)
	if err != nil {
		return nil, "", err
	}
	dir, err := postgres.Home(filepath.Join(cfg.Dir, "postgres"))
	if err != nil {
		return nil, "", err
	}
	port, err := choose(cfg.PostgresPort)
	if err != nil {
		return nil, "", err
	}
	server, err := postgres.Start(ctx, postgres.Config{Bin: bin, Dir: dir, Port: port, Durable: cfg.Durable, Log: cfg.Log("postgres")})
	return server, fmt.Sprintf("%s, port %d, data in %s", detail, port, dir), err
}

// PostgresBinaries finds an installed server, else fetches one once.
func PostgresBinaries(ctx context.Context, p project.Project, say func(string, ...any)) (bin, detail string, err error) {
	if bin, ok := postgres.Find(); ok {
		return bin, bin, nil
	}
	dir, err := postgres.Home(filepath.Join(p.Cache(), "postgres"))
	if err != nil {
		return "", "", err
	}
	say("PostgreSQL  none installed: fetching embedded binaries into %s (once)", dir)
	bin, err = postgres.Fetch(ctx, dir, io.Discard)
	return bin, "embedded binaries", err
}

func openRedis(ctx context.Context, cfg Config, s *Set) (Service, error) {
	service := Service{Name: "Redis", Origin: Given, Detail: cfg.RedisAddr}
	if cfg.RedisAddr != "" {
		s.RedisAddr = cfg.RedisAddr
		return service, nil
	}
	port, err := choose(cfg.RedisPort)
	if err != nil {
		return service, err
	}
	path, found := redis.Find()
	if cfg.PreferReal && found {
		dir := filepath.Join(cfg.Dir, "redis")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return service, err
		}
		server, err := redis.Start(ctx, redis.Config{Path: path, Dir: dir, Port: port, Keep: cfg.Durable, Log: cfg.Log("redis")})
		if err != nil {
			return service, err
		}
		s.RedisAddr = server.Addr()
		return Service{Name: "Redis", Origin: Started, Detail: path + ", " + server.Addr(), close: server.Close}, nil
	}
	if cfg.RequireReal {
		return service, errors.New("a real Redis is required (REQUIRE_REAL=1) and redis-server is not on PATH")
	}
	server, err := redis.StartInProcess(port)
	if err != nil {
		return service, err
	}
	s.RedisAddr = server.Addr()
	return Service{Name: "Redis", Origin: StandIn, Detail: "miniredis, " + server.Addr(), close: server.Close}, nil
}

func openKafka(ctx context.Context, cfg Config, s *Set) (Service, error) {
	service := Service{Name: "Kafka", Origin: Given, Detail: cfg.KafkaBrokers}
	if cfg.KafkaBrokers != "" {
		s.KafkaBrokers = cfg.KafkaBrokers
		return service, nil
	}
	if cfg.PreferReal {
		broker, err := startBroker(ctx, cfg)
		if err == nil {
			s.KafkaBrokers = broker.Addr()
			return Service{Name: "Kafka", Origin: Started, Detail: "KRaft broker, " + broker.Addr(), close: broker.Close}, nil
		}
		if cfg.RequireReal || !errors.Is(err, kafka.ErrUnavailable) {
			return service, err
		}
		cfg.Say("Kafka       %v: a stand-in takes its place", err)
	}
	port, err := choose(cfg.KafkaPort)
	if err != nil {
		return service, err
	}
	fake, err := kafka.StartInProcess(port, filepath.Join(cfg.Dir, "kfake"), cfg.Log("kafka"))
	if err != nil {
		return service, err
	}
	s.KafkaBrokers = fake.Addr()
	return Service{Name: "Kafka", Origin: StandIn, Detail: "kfake, " + fake.Addr(), close: fake.Close}, nil
}

func startBroker(ctx context.Context, cfg Config) (*kafka.Broker, error) {
	libs, err := kafka.Fetch(ctx, filepath.Join(cfg.Project.Cache(), "kafka"))
	if err != nil {
		return nil, err
	}
	port, err := choose(cfg.KafkaPort)
	if err != nil {
		return nil, err
	}
	controller, err := choose(cfg.KafkaController)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cfg.Dir, "kafka")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return kafka.Start(ctx, kafka.Config{Libs: libs, Dir: dir, Port: port, ControllerPort: controller, Log: cfg.Log("kafka")})
}

func choose(port int) (int, error) {
	if port != 0 {
		return port, nil
	}
	return project.FreePort()
}
