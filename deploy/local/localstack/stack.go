// Package localstack is the local stack of `make run`: stores, the three services as real binaries, the demo
// engine, the fake provider with one shop that is installed and loaded, a custom connection whose catalog the
// demo connector delivers, and the demo shop that sells it, all in the foreground. It owns the .run folder:
// logs, data, what has to be remembered between runs, and demo.env, which exists only while everything is
// ready. It is not meant for production.
package localstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"storefront.internal/deploy/local/backing"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

const (
	database    = "storefront"
	readyWithin = 60 * time.Second
	stopWithin  = 20 * time.Second
)

// Stack is one local stack.
type Stack struct {
	*stack.Deployment
	project project.Project
	out     io.Writer
	ports   ports
	state   state
	stores  *backing.Set
}

// Run starts everything, prints how to use it, and stops everything when ctx ends or a process ends by
// itself.
func Run(ctx context.Context, p project.Project, out io.Writer) (err error) {
	s := &Stack{project: p, out: out}
	if s.ports, err = portsFrom(os.Getenv("PORT_BASE")); err != nil {
		return err
	}
	if err := os.MkdirAll(p.Run(), 0o755); err != nil {
		return err
	}
	unlock, err := lock(s.path("lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.removeDemo(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // Ctrl-C while starting
		}
		return err
	}
	return s.watch(ctx)
}

// lock makes sure that only one stack uses a .run folder. The operating system releases it when the process
// ends in any way.
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

func (s *Stack) path(name string) string { return filepath.Join(s.project.Run(), name) }

func (s *Stack) say(format string, args ...any) { fmt.Fprintf(s.out, "local: "+format+"\n", args...) }

func (s *Stack) start(ctx context.Context) (err error) {
	if s.state, err = loadState(s.path("state.json")); err != nil {
		return err
	}
	if s.stores, err = s.openStores(ctx); err != nil {
		return err
	}
	if err := s.startServices(ctx); err != nil {
		return err
	}
	d, decisionID, err := s.fill(ctx)
	if err != nil {
		return err
	}
	if err := s.startShop(ctx); err != nil {
		return err
	}
	if err := writeAtomically(s.path("demo.env"), d.file(), 0o600); err != nil {
		return err
	}
	printBanner(s.out, d, decisionID, s.stores.StandIns(), s.path("demo.env"))
	return nil
}

func (s *Stack) openStores(ctx context.Context) (*backing.Set, error) {
	if err := s.ports.free(); err != nil {
		return nil, err
	}
	installed := os.Getenv("BACKENDS") == "real"
	return backing.Open(ctx, backing.Config{
		Project: s.project, Dir: s.project.Run(), Durable: true,
		PreferReal: installed, RequireReal: installed && os.Getenv("REQUIRE_REAL") == "1",
		DatabaseURL: os.Getenv("DATABASE_URL"), RedisAddr: os.Getenv("REDIS_ADDR"),
		KafkaBrokers: os.Getenv("KAFKA_BROKERS"),
		PostgresPort: s.ports.number(postgresPort), RedisPort: s.ports.number(redisPort),
		KafkaPort: s.ports.number(kafkaPort), KafkaController: s.ports.number(kafkaControllerPort),
		Log: s.openLog, Say: s.say,
	})
}

// startServices prepares the database and starts the provider and the engine, the relay, control and the
// edge: first those that others call.
func (s *Stack) startServices(ctx context.Context) error {
	settings, err := s.settings()
	if err != nil {
		return err
	}
	if err := settings.Prepare(ctx); err != nil {
		return err
	}
	d := stack.New(ctx, stack.Config{Settings: settings, Log: s.openLog, Addresses: s.ports.addresses(),
		Say: s.say})
	s.Deployment = d
	for _, add := range []func() (*stack.Process, error){
		func() (*stack.Process, error) {
			return d.Provider("control", fmt.Sprint("FAKEPROVIDER_PRODUCTS=", shopProducts),
				"FAKEPROVIDER_STORES="+shopProvider+":"+shopID)
		},
		func() (*stack.Process, error) {
			return d.Engine("control", "DEMOENGINE_KEEP="+s.path("demoengine.json"))
		},
		func() (*stack.Process, error) { return d.Relay("engine-relay") },
		func() (*stack.Process, error) { return d.Control("control") },
		func() (*stack.Process, error) { return d.Edge("edge") },
	} {
		p, err := add()
		if err != nil {
			return err
		}
		s.say("%-12s is starting", p.Name)
		if err := d.Start(ctx, readyWithin, p); err != nil {
			return fmt.Errorf("%w (log: %s)", err, s.path(p.Name+".log"))
		}
	}
	return ctx.Err()
}

// startShop starts the demo shop, which shows the custom connection's catalog.
func (s *Stack) startShop(ctx context.Context) error {
	p, err := s.DemoShop("edge", "control",
		client.Storefront{ConnectionID: s.state.Connection.ConnectionID, Key: s.state.Key})
	if err != nil {
		return err
	}
	s.say("%-12s is starting", p.Name)
	return s.Start(ctx, readyWithin, p)
}

func (s *Stack) settings() (stack.Settings, error) {
	url := s.stores.DatabaseURL
	if os.Getenv("DATABASE_URL") == "" {
		var err error
		if url, err = stack.WithDatabase(url, database); err != nil {
			return stack.Settings{}, err
		}
	}
	return stack.Settings{
		Bin: s.project.Bin(), Database: url, RolePassword: s.state.RolePassword,
		RedisAddr: s.stores.RedisAddr, KafkaBrokers: s.stores.KafkaBrokers,
		ErrorsBase:   s.ports.url(edgePort) + "/errors/",
		DecisionKeys: s.state.DecisionKeys, KeysetFile: s.path("keyset.json"), Pepper: s.state.Pepper,
		ConnectorToken: s.state.ConnectorToken, BackendToken: s.state.BackendToken,
		EngineToken:  s.state.EngineToken,
		EngineSecret: s.state.EngineSecret, AppID: appID, AppSecret: s.state.AppSecret,
	}, nil
}

// watch waits for Ctrl-C, or for a process that ends by itself, which is an error.
func (s *Stack) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(s.Processes()))
	for _, p := range s.Processes() {
		go func() {
			if exit, err := p.AwaitExit(ctx); err == nil {
				ended <- fmt.Errorf("%s ended by itself (%s): its log is %s", p.Name, exit.Ending,
					s.path(p.Name+".log"))
			}
		}()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}

// stop stops processes and stores in the reverse order of their start, so that each still reaches what it
// writes to.
func (s *Stack) stop() error {
	s.say("stopping")
	var errs []error
	if s.Deployment != nil {
		errs = append(errs, s.Close(stopWithin))
	}
	if s.stores != nil {
		errs = append(errs, s.stores.Close())
	}
	return errors.Join(append(errs, s.removeDemo())...)
}

func (s *Stack) removeDemo() error {
	if err := os.Remove(s.path("demo.env")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// demo describes the shop of the fake provider, whose product has the given id there, and the custom
// connection.
func (s *Stack) demo(externalID string) demo {
	c, shop := s.state.Connection, s.state.Shop
	return demo{
		{"BASE_URL", s.ports.url(edgePort)},
		{"INTERNAL_BASE_URL", s.ports.url(controlPort)},
		{"ERRORS_BASE", s.Settings.ErrorsBase},
		{"CONNECTION_ID", shop.ConnectionID},
		{"STOREFRONT_KEY", s.state.ShopKey},
		{"ITEM_ID", string(catalog.NewItemID(ident.ConnectionID(shop.ConnectionID), externalID))},
		{"ITEM_EXTERNAL_ID", externalID},
		{"EXTERNAL_STORE_ID", shopID},
		{"CONNECTOR_TOKEN", s.state.ConnectorToken},
		{"CONNECTOR_PROVIDER", shopProvider},
		{"BACKEND_TOKEN", s.state.BackendToken},
		{"ENGINE_TOKEN", s.state.EngineToken},
		{"CUSTOM_CONNECTION_ID", c.ConnectionID},
		{"CUSTOM_CONNECTOR_TOKEN", c.Token},
		{"CUSTOM_STOREFRONT_KEY", s.state.Key},
		{"PROVIDER_APP_ID", s.Settings.AppID},
		{"PROVIDER_APP_SECRET", s.Settings.AppSecret},
		{"PROVIDER_URL", s.Settings.ProviderURL},
		{"WEBHOOK_ENDPOINT_ID", shop.EndpointID},
		{"ENGINE_URL", s.Settings.EngineURL},
		{"DEMO_SHOP_URL", s.ports.url(demoShopPort)},
		{"DATABASE_URL", s.Settings.Database},
		{"REDIS_ADDR", s.Settings.RedisAddr},
		{"KAFKA_BROKERS", s.Settings.KafkaBrokers},
		{"EDGE_ADMIN_URL", s.ports.url(edgePort + adminOffset)},
		{"CONTROL_ADMIN_URL", s.ports.url(controlPort + adminOffset)},
		{"RELAY_ADMIN_URL", s.ports.url(relayAdmin)},
	}
}
