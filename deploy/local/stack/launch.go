package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/local/services"
)

const database = "storefront"

// lock makes sure that one stack at a time uses a .run folder. The lock ends with the process, however that ends.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another `make run` uses %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// prepareDatabase brings schema and login roles to where the services expect them.
func (s *Stack) prepareDatabase(ctx context.Context) error {
	url := s.set.DatabaseURL
	if os.Getenv("DATABASE_URL") == "" {
		if err := services.EnsureDatabase(ctx, url, database); err != nil {
			return err
		}
		var err error
		if url, err = services.WithDatabase(url, database); err != nil {
			return err
		}
	}
	s.shared = services.Settings{
		Bin: s.project.Bin(), Database: url, RolePassword: s.state.RolePassword,
		RedisAddr: s.set.RedisAddr, KafkaBrokers: s.set.KafkaBrokers, ErrorsBase: s.url(s.ports.edge) + "/errors/",
		DecisionKeys: s.state.DecisionKeys, KeysetFile: s.path("keyset.json"),
		ConnectorToken: s.state.ConnectorToken, BackendToken: s.state.BackendToken, EngineToken: s.state.EngineToken, Pepper: s.state.Pepper,
		EngineURL: s.url(s.ports.engine), EngineSecret: s.state.EngineSecret,
		ProviderURL: s.url(s.ports.provider), AppID: appID, AppSecret: s.state.AppSecret,
	}
	if err := s.shared.EnsureKeyset(ctx); err != nil {
		return err
	}
	if _, err := s.shared.Once(ctx, s.shared.Migrate(), "migrate", "up"); err != nil {
		return err
	}
	return services.EnsureLogins(ctx, url, s.state.RolePassword)
}

// startServices starts the demo engine and the fake provider, the relay, control and the edge, in this order: whoever takes
// work comes last.
func (s *Stack) startServices(ctx context.Context) error {
	if err := s.launch(ctx, "fakeprovider", []string{
		"FAKEPROVIDER_LISTEN=" + project.Loopback(s.ports.provider), "FAKEPROVIDER_APP_SECRET=" + s.state.AppSecret,
		"FAKEPROVIDER_PRODUCTS=" + strconv.Itoa(shopProducts), "FAKEPROVIDER_STORES=" + services.ConnectorProvider + ":" + shopID,
		"FAKEPROVIDER_CONTROL=" + s.url(s.ports.control),
		"FAKEPROVIDER_CONNECTOR_TOKENS=" + s.shared.ConnectorTokens(),
	}, func(p *process.Process) error {
		return p.WaitReady(ctx, func(context.Context) error { return dial(s.ports.provider) })
	}); err != nil {
		return err
	}
	if err := s.launch(ctx, "demoengine", []string{
		"DEMOENGINE_LISTEN=" + project.Loopback(s.ports.engine), "DEMOENGINE_TOKEN=" + s.state.EngineSecret,
		"DEMOENGINE_SNAPSHOTS_URL=" + s.url(s.ports.control), "DEMOENGINE_SNAPSHOTS_TOKEN=" + s.state.EngineToken,
		"DEMOENGINE_KEEP=" + s.path("demoengine.json"),
	}, func(p *process.Process) error {
		return p.WaitReady(ctx, func(context.Context) error { return dial(s.ports.engine) })
	}); err != nil {
		return err
	}
	ready := func(admin int) func(*process.Process) error {
		return func(p *process.Process) error { return services.Ready(ctx, p, project.Loopback(admin), readyWithin) }
	}
	relay := s.shared.Relay(project.Loopback(s.ports.relayAdmin))
	if err := s.launch(ctx, "engine-relay", relay, ready(s.ports.relayAdmin)); err != nil {
		return err
	}
	control := s.shared.Control(project.Loopback(s.ports.control), project.Loopback(s.ports.controlAdmin))
	if err := s.launch(ctx, "control", control, ready(s.ports.controlAdmin)); err != nil {
		return err
	}
	edge := s.shared.Edge(project.Loopback(s.ports.edge), project.Loopback(s.ports.edgeAdmin))
	return s.launch(ctx, "edge", edge, ready(s.ports.edgeAdmin))
}

func (s *Stack) launch(ctx context.Context, name string, env []string, ready func(*process.Process) error) error {
	p, err := s.shared.Start(name, env, s.log(name))
	if err != nil {
		return err
	}
	s.running = append(s.running, p)
	s.say("%-12s starting", name)
	if err := ready(p); err != nil {
		return fmt.Errorf("%w (its log is %s)", err, s.path(name+".log"))
	}
	return ctx.Err()
}

func dial(port int) error {
	c, err := net.Dial("tcp", project.Loopback(port))
	if err != nil {
		return err
	}
	return c.Close()
}
