// Package backing starts PostgreSQL, Redis and Kafka. A given address is used first, then an installed
// server, then a stand-in in this process; where real servers are required it fails instead. It knows nothing
// of the services that use them.
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

// Origin is where a store comes from.
type Origin string

// The origins.
const (
	Given   Origin = "given by address"
	Started Origin = "real, started here"
	StandIn Origin = "IN-PROCESS STAND-IN"
)

// Service is a store that answers.
type Service struct {
	Name   string
	Origin Origin
	Detail string
	close  func() error
}

// Config of a set. Zero ports are claimed; a store at a given address is not stopped.
type Config struct {
	Project project.Project
	// Dir holds the data of the stores that are started here.
	Dir string
	// Durable waits for the disk at commit, and lets Redis keep its data.
	Durable bool
	// PreferReal starts a real Redis and Kafka if they are installed; PostgreSQL is always real.
	PreferReal bool
	// RequireReal fails where PreferReal would fall back to a stand-in.
	RequireReal bool

	DatabaseURL, RedisAddr, KafkaBrokers                string
	PostgresPort, RedisPort, KafkaPort, KafkaController int
	// Log opens the log of one store.
	Log func(name string) io.Writer
	// Say prints a message for a person.
	Say func(format string, args ...any)
}

// Set is a PostgreSQL, a Redis and a Kafka that answer.
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
	type opener func(context.Context, Config, *Set) (Service, error)
	for _, open := range []opener{openPostgres, openRedis, openKafka} {
		service, err := open(ctx, cfg, s)
		if err != nil {
			return nil, err
		}
		s.Services = append(s.Services, service)
		cfg.Say("%-11s %s (%s)", service.Name, service.Origin, service.Detail)
	}
	return s, nil
}

// Close stops what Open started, in reverse order.
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

// StandIns reports whether a stand-in is among the stores.
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
	dir, err := postgres.Home(filepath.Join(cfg.Dir, "postgres"))
	if err != nil {
		return nil, "", err
	}
	binaries, err := PostgresBinaries(ctx, cfg.Project, dir, cfg.Say)
	if err != nil {
		return nil, "", err
	}
	port, err := choose(cfg.PostgresPort)
	if err != nil {
		return nil, "", err
	}
	server, err := postgres.Start(ctx, postgres.Config{
		Binaries: binaries, Dir: dir, Port: port, Durable: cfg.Durable, Log: cfg.Log("postgres"),
	})
	detail := fmt.Sprintf("version %d of %s, port %d, data in %s", binaries.Major, binaries.Dir, port, dir)
	return server, detail, err
}

// PostgresBinaries returns a server for the data in a folder: an installed one, or one that was fetched
// before, or it fetches one.
func PostgresBinaries(ctx context.Context, p project.Project, data string,
	say func(string, ...any)) (postgres.Binaries, error) {
	cache, err := postgres.Home(filepath.Join(p.Cache(), "postgres"))
	if err != nil {
		return postgres.Binaries{}, err
	}
	servers := postgres.Installed(ctx)
	if fetched, found := postgres.Fetched(ctx, cache); found {
		servers = append(servers, fetched)
	}
	if len(servers) == 0 {
		say("PostgreSQL  is not installed: its binaries are downloaded to %s, once", cache)
		fetched, err := postgres.Fetch(ctx, cache, io.Discard)
		if err != nil {
			return fetched, err
		}
		servers = append(servers, fetched)
	}
	chosen, note := postgres.Choose(servers, data)
	if note != "" {
		say("PostgreSQL  %s", note)
	}
	return chosen, nil
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
		server, err := redis.Start(ctx, redis.Config{Path: path, Dir: dir, Port: port, Keep: cfg.Durable,
			Log: cfg.Log("redis")})
		if err != nil {
			return service, err
		}
		s.RedisAddr = server.Addr()
		return Service{Name: "Redis", Origin: Started, Detail: path + ", " + server.Addr(),
			close: server.Close}, nil
	}
	if cfg.RequireReal {
		return service, errors.New("REQUIRE_REAL=1 needs a real Redis, and redis-server is not on PATH")
	}
	server, err := redis.StartInProcess(port)
	if err != nil {
		return service, err
	}
	s.RedisAddr = server.Addr()
	return Service{Name: "Redis", Origin: StandIn, Detail: "miniredis, " + server.Addr(),
		close: server.Close}, nil
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
			return Service{Name: "Kafka", Origin: Started, Detail: "KRaft broker, " + broker.Addr(),
				close: broker.Close}, nil
		}
		if cfg.RequireReal || !errors.Is(err, kafka.ErrUnavailable) {
			return service, err
		}
		cfg.Say("Kafka       %v: kfake is used instead", err)
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
	return kafka.Start(ctx, kafka.Config{Libs: libs, Dir: dir, Port: port, ControllerPort: controller,
		Log: cfg.Log("kafka")})
}

func choose(port int) (int, error) {
	if port != 0 {
		return port, nil
	}
	return project.ClaimPort()
}
