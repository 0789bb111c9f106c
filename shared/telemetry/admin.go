package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// checkTimeout bounds each readiness check.
const checkTimeout = 2 * time.Second

// AdminConfig configures an Admin.
type AdminConfig struct {
	Listen   string // host:port; port 0 takes a free port
	Gatherer prometheus.Gatherer
	Logger   *slog.Logger
	Service  string
	Pprof    bool // serve /debug/pprof
	// Top answers /debug/top, which names the connections that make most of the load; nil: not found.
	Top http.Handler
}

// Admin is the HTTP server of the operations port: /metrics, /livez (the process runs), /readyz (all checks
// pass and the service is not draining) and /version.
type Admin struct {
	cfg      AdminConfig
	server   *http.Server
	draining atomic.Bool

	mu     sync.Mutex
	addr   string
	checks []check
}

type check struct {
	name string
	run  func(context.Context) error
}

// NewAdmin returns an Admin; Start binds the port.
func NewAdmin(cfg AdminConfig) *Admin {
	a := &Admin{cfg: cfg}
	a.server = &http.Server{
		Handler: a.Handler(), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
	}
	return a
}

// AddCheck adds a readiness check. It must obey its context and be cheap, since it runs at each probe.
func (a *Admin) AddCheck(name string, run func(context.Context) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checks = append(a.checks, check{name, run})
}

// SetDraining makes /readyz fail from now on, so that load balancers stop sending requests.
func (a *Admin) SetDraining() { a.draining.Store(true) }

// Addr returns the bound address after Start.
func (a *Admin) Addr() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.addr
}

// Start binds the port and serves in the background.
func (a *Admin) Start(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.cfg.Listen)
	if err != nil {
		return fmt.Errorf("operations port: %w", err)
	}
	a.mu.Lock()
	a.addr = l.Addr().String()
	a.mu.Unlock()
	go func() {
		if err := a.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			a.cfg.Logger.Error("operations port ended", "error", err)
		}
	}()
	return nil
}

// Stop closes the listener and waits for running requests until ctx ends.
func (a *Admin) Stop(ctx context.Context) error {
	if err := a.server.Shutdown(ctx); err != nil {
		return errors.Join(err, a.server.Close())
	}
	return nil
}

// Handler returns the handler of the port.
func (a *Admin) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics",
		promhttp.HandlerFor(a.cfg.Gatherer, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", a.readyz)
	mux.HandleFunc("GET /version", a.version)
	if a.cfg.Top != nil {
		mux.Handle("GET /debug/top", a.cfg.Top)
	}
	if a.cfg.Pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return mux
}

func (a *Admin) version(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	// fails only when the client is gone
	_ = json.NewEncoder(w).Encode(map[string]string{"service": a.cfg.Service, "version": Version()})
}

func (a *Admin) readyz(w http.ResponseWriter, r *http.Request) {
	results := a.runChecks(r.Context())
	status := http.StatusOK
	for _, res := range results {
		if res.err != nil {
			status = http.StatusServiceUnavailable
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	if r.URL.Query().Has("verbose") {
		for _, res := range results {
			if res.err != nil {
				fmt.Fprintf(w, "[-] %s: %s\n", res.name, Redact(res.err.Error()))
			} else {
				fmt.Fprintf(w, "[+] %s ok\n", res.name)
			}
		}
	}
	if status == http.StatusOK {
		fmt.Fprintln(w, "ok")
	} else {
		fmt.Fprintln(w, "not ready")
	}
}

type checkResult struct {
	name string
	err  error
}

var errDraining = errors.New("draining")

// runChecks runs all checks concurrently and returns the results in the order of the checks.
func (a *Admin) runChecks(ctx context.Context) []checkResult {
	a.mu.Lock()
	checks := a.checks[:len(a.checks):len(a.checks)]
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	results := make([]checkResult, len(checks)+1)
	var wg sync.WaitGroup
	for i, c := range checks {
		wg.Go(func() { results[i] = checkResult{c.name, c.safely(ctx)} })
	}
	wg.Wait()
	results[len(checks)] = checkResult{name: "not draining"}
	if a.draining.Load() {
		results[len(checks)].err = errDraining
	}
	return results
}

func (c check) safely(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %T", v)
		}
	}()
	return c.run(ctx)
}
