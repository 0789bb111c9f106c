// Package stack is the local stack: backing services, the three services as the real binaries, the demo engine, a store of the fake
// provider that is installed and loaded, and a custom connection whose catalog the demo connector delivers, in the foreground. It owns the .run folder: logs, data, what has to be remembered
// between runs, and demo.env, which appears only when everything is ready. Nothing of it is meant for production.
package stack

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
	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/local/services"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

const readyWithin = 60 * time.Second

// Stack is one local stack.
type Stack struct {
	project project.Project
	out     io.Writer
	ports   ports
	state   state
	set     *backing.Set
	shared  services.Settings
	running []*process.Process // in the order of their start
}

// Run starts everything, says how to use it, and stops everything when ctx ends or a part dies.
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
	if err := os.Remove(s.path("demo.env")); err != nil && !errors.Is(err, os.ErrNotExist) {
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

func (s *Stack) path(name string) string { return filepath.Join(s.project.Run(), name) }

func (s *Stack) say(format string, args ...any) { fmt.Fprintf(s.out, "local: "+format+"\n", args...) }

func (s *Stack) start(ctx context.Context) (err error) {
	if s.state, err = loadState(s.path("state.json")); err != nil {
		return err
	}
	if s.set, err = s.openBacking(ctx); err != nil {
		return err
	}
	if err := s.prepareDatabase(ctx); err != nil {
		return err
	}
	if err := s.startServices(ctx); err != nil {
		return err
	}
	internal := services.Internal{BaseURL: s.url(s.ports.control), ConnectorToken: s.state.ConnectorToken, BackendToken: s.state.BackendToken}
	if err := connect(ctx, internal, &s.state); err != nil {
		return err
	}
	if err := s.state.save(s.path("state.json")); err != nil {
		return err
	}
	if err := s.install(ctx, internal); err != nil {
		return err
	}
	if err := s.fill(ctx); err != nil {
		return err
	}
	externalID, err := s.firstPublished(ctx)
	if err != nil {
		return err
	}
	d := s.demo(externalID)
	if err := readable(ctx, d); err != nil {
		return err
	}
	decisionID, err := recommend(ctx, d)
	if err != nil {
		return err
	}
	if err := writeAtomically(s.path("demo.env"), d.file(), 0o600); err != nil {
		return err
	}
	printBanner(s.out, d, decisionID, s.set.StandIns(), s.path("demo.env"))
	return nil
}

func (s *Stack) openBacking(ctx context.Context) (*backing.Set, error) {
	if err := s.ports.free(); err != nil {
		return nil, err
	}
	return backing.Open(ctx, backing.Config{
		Project: s.project, Dir: s.project.Run(), Durable: true,
		PreferReal: os.Getenv("BACKENDS") == "real", RequireReal: os.Getenv("BACKENDS") == "real" && os.Getenv("REQUIRE_REAL") == "1",
		DatabaseURL: os.Getenv("DATABASE_URL"), RedisAddr: os.Getenv("REDIS_ADDR"), KafkaBrokers: os.Getenv("KAFKA_BROKERS"),
		PostgresPort: s.ports.postgres, RedisPort: s.ports.redis, KafkaPort: s.ports.kafka, KafkaController: s.ports.kafkaController,
		Log: s.log, Say: s.say,
	})
}

// log opens the log of one part; where that fails the log is lost and nothing else.
func (s *Stack) log(name string) io.Writer {
	l, err := openLog(s.project.Run(), name, s.out)
	if err != nil {
		s.say("no log for %s: %v", name, err)
		return io.Discard
	}
	return l
}

// watch waits for Ctrl-C, or for a part that ends by itself, which is an error.
func (s *Stack) watch(ctx context.Context) error {
	died := make(chan *process.Process, len(s.running))
	for _, p := range s.running {
		go func() { <-p.Done(); died <- p }()
	}
	select {
	case <-ctx.Done():
		return nil
	case p := <-died:
		return fmt.Errorf("%s ended by itself (%s): its log is %s", p.Name(), p.Ending(), s.path(p.Name()+".log"))
	}
}

// stop goes against the order of the start, so that every part still finds what it writes to.
func (s *Stack) stop() error {
	s.say("stopping")
	var errs []error
	for i := len(s.running) - 1; i >= 0; i-- {
		errs = append(errs, s.running[i].Stop(syscall.SIGTERM, 20*time.Second))
	}
	if s.set != nil {
		errs = append(errs, s.set.Close())
	}
	return errors.Join(append(errs, removeIfThere(s.path("demo.env")))...)
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (s *Stack) url(port int) string { return "http://" + project.Loopback(port) }

// demo is about the fake provider's store, whose product has the given id there, and about the custom connection.
func (s *Stack) demo(externalID string) demo {
	c, shop := s.state.Connection, s.state.Shop
	return demo{
		{"BASE_URL", s.url(s.ports.edge)},
		{"INTERNAL_BASE_URL", s.url(s.ports.control)},
		{"ERRORS_BASE", s.shared.ErrorsBase},
		{"CONNECTION_ID", shop.ConnectionID},
		{"STOREFRONT_KEY", s.state.ShopKey},
		{"ITEM_ID", string(catalog.NewItemID(ident.ConnectionID(shop.ConnectionID), externalID))},
		{"ITEM_EXTERNAL_ID", externalID},
		{"EXTERNAL_STORE_ID", shopID},
		{"CONNECTOR_TOKEN", s.state.ConnectorToken},
		{"CONNECTOR_PROVIDER", services.ConnectorProvider},
		{"BACKEND_TOKEN", s.state.BackendToken},
		{"ENGINE_TOKEN", s.state.EngineToken},
		{"CUSTOM_CONNECTION_ID", c.ConnectionID},
		{"CUSTOM_CONNECTOR_TOKEN", c.Token},
		{"CUSTOM_STOREFRONT_KEY", s.state.Key},
		{"PROVIDER_APP_ID", s.shared.AppID},
		{"PROVIDER_APP_SECRET", s.shared.AppSecret},
		{"PROVIDER_URL", s.shared.ProviderURL},
		{"WEBHOOK_ENDPOINT_ID", shop.EndpointID},
		{"ENGINE_URL", s.shared.EngineURL},
		{"DATABASE_URL", s.shared.Database},
		{"REDIS_ADDR", s.set.RedisAddr},
		{"KAFKA_BROKERS", s.set.KafkaBrokers},
		{"EDGE_ADMIN_URL", s.url(s.ports.edgeAdmin)},
		{"CONTROL_ADMIN_URL", s.url(s.ports.controlAdmin)},
		{"RELAY_ADMIN_URL", s.url(s.ports.relayAdmin)},
	}
}
