//go:build web

package webtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/deploy/democonnector/connector"
	"storefront.internal/deploy/democonnector/demo"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/deploy/stack/poll"
	"storefront.internal/deploy/web"
	"storefront.internal/deploy/webtest/browser"
)

// service is one deployment with a connection whose catalog is loaded, and the demo shop.
type service struct {
	*stack.Deployment
	project       project.Project
	dir           string
	api           client.Internal
	shop          client.Storefront
	edge, demo    *stack.Process
	relay, engine *stack.Process
	pool          *pgxpool.Pool // as superuser
	sdk           web.Files
	chromium      func() (browser.Browser, error) // starts it at the first call
	closers       []func()
}

var shared *service

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "webtest:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "storefront-webtest-")
	if err != nil {
		return 1, err
	}
	s := &service{dir: dir}
	s.chromium = sync.OnceValues(s.startChromium)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := s.start(ctx); err != nil {
		return 1, errors.Join(err, s.close())
	}
	shared = s
	if code = m.Run(); code != 0 {
		fmt.Fprintln(os.Stderr, "logs of the processes:", dir)
		return code, s.close()
	}
	return code, errors.Join(s.close(), os.RemoveAll(dir))
}

// startChromium starts the browser that the tests share. It lives until close.
func (s *service) startChromium() (browser.Browser, error) {
	dir := filepath.Join(s.dir, "chromium")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	b, err := browser.Start(context.Background(), browser.Chromium, dir)
	if err == nil {
		s.closers = append(s.closers, b.Kill)
	}
	return b, err
}

func (s *service) close() error {
	for _, f := range s.closers {
		f()
	}
	if s.pool != nil {
		s.pool.Close()
	}
	if s.Deployment == nil {
		return nil
	}
	return s.Close(20 * time.Second)
}

const readyWithin = 60 * time.Second

func (s *service) start(ctx context.Context) (err error) {
	if s.project, err = project.Find(); err != nil {
		return err
	}
	if err := os.Chmod(s.dir, 0o755); err != nil { // for PostgreSQL's user
		return err
	}
	if s.sdk, err = web.Build(filepath.Join(s.project.Root, "edge", "sdk")); err != nil {
		return err
	}
	secret := func(name string) string { return strings.Repeat(name+"-", 6) }
	s.Deployment = stack.New(ctx, stack.Config{LogDir: s.dir, Settings: stack.Settings{
		Bin: s.project.Bin(), ErrorsBase: "https://errors.example/",
		DecisionKeys: "k1:" + strings.Repeat("QUJD", 11), KeysetFile: filepath.Join(s.dir, "keyset.json"),
		ConnectorToken: secret("connector"), BackendToken: secret("backend"), EngineToken: secret("engine"),
		Pepper: secret("pepper"), EngineSecret: "engine-secret-1",
	}})
	if err := s.StartStores(ctx, stack.Stores{Project: s.project, Dir: s.dir, KeepRedis: true}); err != nil {
		return err
	}
	if err := s.Settings.Prepare(ctx); err != nil {
		return err
	}
	if s.pool, err = pgxpool.New(ctx, s.Settings.Database); err != nil {
		return err
	}
	if err := s.startServices(ctx); err != nil {
		return err
	}
	return s.open(ctx)
}

func (s *service) startServices(ctx context.Context) error {
	for _, add := range []func() (*stack.Process, error){
		func() (p *stack.Process, err error) { s.engine, err = s.Engine("control"); return s.engine, err },
		func() (p *stack.Process, err error) {
			s.relay, err = s.Relay("engine-relay", "RELAY_BACKOFF_MAX=2s", "RELAY_ENGINE_TIMEOUT=3s")
			return s.relay, err
		},
		func() (*stack.Process, error) {
			p, err := s.Control("control")
			if err == nil {
				s.api = s.Internal(p)
			}
			return p, err
		},
		func() (p *stack.Process, err error) {
			s.edge, err = s.Edge("edge", "EDGE_ENGINE_DEADLINE=2s")
			return s.edge, err
		},
	} {
		p, err := add()
		if err != nil {
			return err
		}
		if err := s.Start(ctx, readyWithin, p); err != nil {
			return err
		}
	}
	return nil
}

// open makes the connection, delivers the demo catalog and starts the demo shop.
func (s *service) open(ctx context.Context) error {
	c, err := s.api.CreateConnection(ctx, "webtest")
	if err != nil {
		return err
	}
	key, err := s.api.IssueKey(ctx, c.ConnectionID)
	if err != nil {
		return err
	}
	_, err = demo.Run(ctx, connector.Config{BaseURL: s.api.BaseURL, ConnectionID: c.ConnectionID,
		Token: c.Token, Log: func(string, ...any) {}}, filepath.Join(s.dir, "revisions.json"))
	if err != nil {
		return err
	}
	s.shop = client.Storefront{BaseURL: s.edge.URL, ConnectionID: c.ConnectionID, Key: key.Secret}
	err = poll.Within(ctx, time.Minute, "the engine knows the catalog", func() error {
		d, err := s.shop.Recommend(ctx, nil)
		if err == nil && (d.Source != "engine" || len(d.Items) < 10) {
			err = fmt.Errorf("%s recommends %d items", d.Source, len(d.Items))
		}
		return err
	})
	if err != nil {
		return err
	}
	if s.demo, err = s.DemoShop("edge", "control", s.shop); err != nil {
		return err
	}
	return s.Start(ctx, readyWithin, s.demo)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
