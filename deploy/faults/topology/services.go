package topology

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"sync"
	"time"

	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/local/services"
)

// Service is a process that we wrote.
type Service struct {
	*Unit
	URL     string // without a link
	Through string // the same, behind the link of its callers
	Admin   string // address of the operations port; empty: it has none

	mu    sync.Mutex
	bin   string // other binaries than the ordinary ones
	extra []string
}

// Alter lets the service start from other binaries and with further variables from now on; zero values are the ordinary way.
func (s *Service) Alter(bin string, extra ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bin, s.extra = bin, extra
}

// Ready waits until the service says that it is.
func (s *Service) Ready(ctx context.Context) error {
	for {
		err := services.Answers(ctx, "http://"+s.Admin+"/readyz?verbose", 3*time.Second)
		if err == nil {
			return nil
		}
		if e := Sleep(ctx, 100*time.Millisecond); e != nil {
			return fmt.Errorf("%s is not ready: %w (last: %w)", s.Name, e, err)
		}
	}
}

// environment is how a service is started, once its addresses are known.
type environment func(s services.Settings, listen, admin string) []string

// plan is a service to be made. Without an address it gets one.
type plan struct {
	name, binary string
	settings     services.Settings
	listen       string
	env          environment
}

// service makes a supervised service. The link of those who call it is "clients>name".
func (x *Topology) service(life context.Context, p plan) (_ *Service, err error) {
	if p.listen == "" {
		if p.listen, err = x.ports.address(); err != nil {
			return nil, err
		}
	}
	admin, err := x.ports.address()
	if err != nil {
		return nil, err
	}
	out := &Service{URL: "http://" + p.listen, Admin: admin}
	if out.Through, err = x.wireURL("clients", p.name, out.URL); err != nil {
		return nil, err
	}
	log, err := x.log(p.name)
	if err != nil {
		return nil, err
	}
	out.Unit = newUnit(life, p.name, x.Say, func(context.Context) (*process.Process, error) {
		return out.launch(p.binary, p.settings, p.env(p.settings, p.listen, admin), log)
	})
	x.units = append(x.units, out.Unit)
	return out, nil
}

func (s *Service) launch(binary string, settings services.Settings, env []string, log io.Writer) (*process.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bin != "" {
		settings.Bin = s.bin
	}
	return settings.Start(binary, append(env, s.extra...), log)
}

// wired is the settings of one process: whatever it talks to lies behind a link of its own.
func (x *Topology) wired(name string, to ...string) (services.Settings, error) {
	s := x.settings
	for _, target := range to {
		var err error
		switch target {
		case "postgres":
			var addr string
			if addr, err = x.wire(name, target, x.direct.postgres); err == nil {
				s.Database, err = withHost(s.Database, addr)
			}
		case "redis":
			s.RedisAddr, err = x.wire(name, target, x.direct.redis)
		case "kafka":
			s.KafkaBrokers = x.Link(name, target).Addr()
		case "engine":
			s.EngineURL, err = x.wireURL(name, target, x.Engine.URL)
		case "provider":
			s.ProviderURL, err = x.wireURL(name, target, x.Provider.URL)
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

func (x *Topology) wireURL(from, to, target string) (string, error) {
	addr, err := x.wire(from, to, target[len("http://"):])
	return "http://" + addr, err
}

func withHost(text, host string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", err
	}
	u.Host = host
	return u.String(), nil
}

// startServices makes all services and starts them: engine and provider first, then those that take work.
func (x *Topology) startServices(ctx, life context.Context) error {
	control, err := x.ports.address()
	if err != nil {
		return err
	}
	for _, make := range []func(context.Context, string) error{x.makePartners, x.makeRelays, x.makeControl, x.makeEdges} {
		if err := make(life, control); err != nil {
			return err
		}
	}
	for _, u := range x.units {
		u.Want()
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for _, s := range []*Service{x.Engine, x.Provider} {
		if err := s.listens(ctx); err != nil {
			return err
		}
	}
	return x.Ready(ctx)
}

func (s *Service) listens(ctx context.Context) error {
	for {
		c, err := net.Dial("tcp", s.URL[len("http://"):])
		if err == nil {
			return c.Close()
		}
		if e := Sleep(ctx, 50*time.Millisecond); e != nil {
			return fmt.Errorf("%s does not listen: %w (last: %w)", s.Name, e, err)
		}
	}
}

// makePartners makes the demo engine and the fake provider. Both call control at the given address, which will be its own.
func (x *Topology) makePartners(life context.Context, control string) (err error) {
	snapshots, err := x.wireURL("engine", "control", "http://"+control)
	if err != nil {
		return err
	}
	x.Engine, err = x.service(life, plan{name: "engine", binary: "demoengine", settings: x.settings,
		env: func(s services.Settings, listen, _ string) []string {
			return []string{"DEMOENGINE_LISTEN=" + listen, "DEMOENGINE_TOKEN=" + s.EngineSecret,
				"DEMOENGINE_SNAPSHOTS_URL=" + snapshots, "DEMOENGINE_SNAPSHOTS_TOKEN=" + s.EngineToken}
		}})
	if err != nil {
		return err
	}
	webhooks, err := x.wireURL("provider", "control", "http://"+control)
	if err != nil {
		return err
	}
	x.Provider, err = x.service(life, plan{name: "provider", binary: "fakeprovider", settings: x.settings,
		env: func(s services.Settings, listen, _ string) []string {
			return []string{"FAKEPROVIDER_LISTEN=" + listen, "FAKEPROVIDER_APP_SECRET=" + s.AppSecret, "FAKEPROVIDER_THROTTLE=off",
				"FAKEPROVIDER_PRODUCTS=" + strconv.Itoa(Products), "FAKEPROVIDER_STORES=" + services.ConnectorProvider + ":" + StoreID,
				"FAKEPROVIDER_CONTROL=" + webhooks, "FAKEPROVIDER_CONNECTOR_TOKENS=" + services.ConnectorProvider + ":" + s.ConnectorToken}
		}})
	return err
}

func (x *Topology) makeRelays(life context.Context, _ string) error {
	for _, name := range []string{"relay-1", "relay-2"} {
		s, err := x.wired(name, "postgres", "kafka", "engine")
		if err != nil {
			return err
		}
		r, err := x.service(life, plan{name: name, binary: "engine-relay", settings: s,
			env: func(s services.Settings, _, admin string) []string {
				env := append(s.Relay(admin), "RELAY_KAFKA_TOPIC_PARTITIONS="+partitions, "RELAY_BACKOFF_MIN=100ms", "RELAY_BACKOFF_MAX=3s",
					"RELAY_ENGINE_TIMEOUT=2s", "RELAY_LEASE=5s")
				if !x.Small { // a run of a minute has no half minute to wait for Decisions that were never recorded
					env = append(env, "RELAY_DECISION_WAIT=3s")
				}
				return env
			}})
		if err != nil {
			return err
		}
		x.Relays = append(x.Relays, r)
	}
	return nil
}

func (x *Topology) makeControl(life context.Context, address string) error {
	s, err := x.wired("control", "postgres", "redis", "provider")
	if err != nil {
		return err
	}
	x.Control, err = x.service(life, plan{name: "control", binary: "control", settings: s, listen: address,
		env: func(s services.Settings, listen, admin string) []string { return s.Control(listen, admin) }})
	return err
}

func (x *Topology) makeEdges(life context.Context, _ string) error {
	for _, name := range []string{"edge-1", "edge-2"} {
		s, err := x.wired(name, "postgres", "redis", "kafka", "engine")
		if err != nil {
			return err
		}
		e, err := x.service(life, plan{name: name, binary: "edge", settings: s,
			env: func(s services.Settings, listen, admin string) []string {
				return append(s.Edge(listen, admin), "EDGE_KAFKA_TOPIC_PARTITIONS="+partitions, "EDGE_REPLICAS=2", "EDGE_DRAIN_DELAY=200ms")
			}})
		if err != nil {
			return err
		}
		x.Edges = append(x.Edges, e)
	}
	return nil
}
