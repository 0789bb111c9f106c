// Package topology is the deployment that a fault run breaks: a real PostgreSQL, Redis and KRaft broker, two edges, two relays, a
// control, the demo engine and the fake provider, each a process of its own that can be killed, stopped and started on the same
// data, and a link on every way between two of them. It owns processes, ports and folders; it injects nothing and judges nothing.
package topology

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"storefront.internal/deploy/faults/link"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/local/services"
)

// Config of a topology.
type Config struct {
	Project project.Project
	Bin     string // the binaries under test
	Dir     string // data, logs; everybody may pass through it
	Small   bool   // the stores' disks can be made full, where this process may mount
	Say     func(format string, args ...any)
}

// Topology is one running deployment.
type Topology struct {
	Config
	Postgres, Redis, Kafka *Unit
	Edges, Relays          []*Service
	Control                *Service
	Engine, Provider       *Service
	Links                  map[string]*link.Link // by "from>to"
	PostgresDisk           *Disk
	KafkaDisk              *Disk

	settings services.Settings
	ports    *ports
	wires    *link.Set
	direct   addresses
	units    []*Unit // in the order of their start
	logs     []*os.File
	stop     context.CancelFunc
}

// addresses are the real ones, behind the links.
type addresses struct {
	postgres, redis, kafka string
}

const (
	database   = "storefront"
	partitions = "8"
	// StoreID is the fake provider's store.
	StoreID = "1001001"
	// Products is how many the store has.
	Products = 60
	appID    = "4242"
	// InFlight is how many requests the relays may have under way at the engine: two of them, four workers each.
	InFlight = 8
)

// Start brings everything up and waits until it is ready. On an error it stops what it started.
func Start(ctx context.Context, cfg Config) (_ *Topology, err error) {
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	x := &Topology{Config: cfg, ports: newPorts(), wires: link.NewSet(), Links: map[string]*link.Link{}, stop: stop}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close())
		}
	}()
	if err := os.MkdirAll(x.path("logs"), 0o755); err != nil {
		return nil, err
	}
	x.settings = services.Settings{
		Bin: cfg.Bin, ErrorsBase: "https://errors.example/", DecisionKeys: "k1:" + strings.Repeat("QUJD", 11), KeysetFile: x.path("keyset.json"),
		ConnectorToken: strings.Repeat("connector-", 4), BackendToken: strings.Repeat("backend-", 5),
		EngineToken: strings.Repeat("engine-", 5), Pepper: strings.Repeat("pepper-", 5), EngineSecret: "engine-secret-1",
		AppID: appID, AppSecret: "fault-app-secret",
	}
	if err := x.startStores(ctx, life); err != nil {
		return nil, err
	}
	if err := x.prepareDatabase(ctx); err != nil {
		return nil, err
	}
	return x, x.startServices(ctx, life)
}

// Close stops everything, last first, and unmounts. The folder stays.
func (x *Topology) Close() error {
	var errs []error
	for _, u := range x.units {
		_ = u.Continue()
	}
	x.stop() // no keeper brings anything back
	for i := len(x.units) - 1; i >= 0; i-- {
		sig := syscall.SIGTERM
		if x.units[i] == x.Postgres {
			sig = syscall.SIGINT
		}
		errs = append(errs, x.units[i].close(20*time.Second, sig))
	}
	x.wires.Close()
	for _, f := range x.logs {
		errs = append(errs, f.Close())
	}
	for _, d := range []*Disk{x.PostgresDisk, x.KafkaDisk} {
		if d != nil {
			errs = append(errs, d.close())
		}
	}
	return errors.Join(errs...)
}

// Units are all processes.
func (x *Topology) Units() []*Unit { return x.units }

// Link is the way from one process to another.
func (x *Topology) Link(from, to string) *link.Link { return x.Links[from+">"+to] }

// wire opens the link between two processes and answers its address.
func (x *Topology) wire(from, to, upstream string) (string, error) {
	listen, err := x.ports.address()
	if err != nil {
		return "", err
	}
	l, err := x.wires.Open(from+">"+to, listen, upstream)
	if err != nil {
		return "", err
	}
	x.Links[l.Name] = l
	return listen, nil
}

func (x *Topology) path(name string) string { return filepath.Join(x.Dir, name) }

// LogDir is where every process writes.
func (x *Topology) LogDir() string { return x.path("logs") }

func (x *Topology) log(name string) (io.Writer, error) {
	f, err := os.OpenFile(filepath.Join(x.LogDir(), name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	x.logs = append(x.logs, f)
	return f, nil
}

// Settings is what the services of the deployment share: tokens, not addresses.
func (x *Topology) Settings() services.Settings { return x.settings }

// API is the internal surface as an operator calls it, without a link.
func (x *Topology) API() services.Internal {
	return services.Internal{BaseURL: x.Control.URL, ConnectorToken: x.settings.ConnectorToken, BackendToken: x.settings.BackendToken}
}

// DatabaseURL is the superuser's, without a link.
func (x *Topology) DatabaseURL() string { return x.settings.Database }

// RedisAddr and Brokers are the stores' own addresses.
func (x *Topology) RedisAddr() string { return x.direct.redis }

// Brokers is the address of the broker, without a link.
func (x *Topology) Brokers() string { return x.direct.kafka }

// Ready waits until every service says that it is.
func (x *Topology) Ready(ctx context.Context) error {
	for _, s := range x.Services() {
		if err := s.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Services are edges, relays and control.
func (x *Topology) Services() []*Service {
	return append(append(append([]*Service{}, x.Edges...), x.Relays...), x.Control)
}
