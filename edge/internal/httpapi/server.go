package httpapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"storefront.internal/edge/internal/intake"
	"storefront.internal/edge/internal/itemread"
	"storefront.internal/edge/internal/overload"
	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/edge/internal/recommend"
	"storefront.internal/edge/internal/sdkfiles"
	"storefront.internal/edge/internal/signalcheck"
	"storefront.internal/shared/heavyhitters"
	"storefront.internal/shared/problem"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/storekey"
	"storefront.internal/shared/tracing"
)

// Keys resolves storefront keys. Its errors are the faults unauthorized and service_unavailable. It does not
// keep the secret.
type Keys interface {
	Resolve(ctx context.Context, secret []byte) (storekey.Grant, error)
	// Known returns what is known without asking the source of truth.
	Known(ctx context.Context, secret []byte) (storekey.Grant, bool)
}

// Signals records storefront signals. It calls charge once, with the number of signals. It does not keep the
// body; the results may point into it.
type Signals interface {
	Record(ctx context.Context, req intake.Request, charge func(n int)) ([]signal.Result, error)
}

// Recommendations answers requests for recommendations. It does not keep the body.
type Recommendations interface {
	Recommend(ctx context.Context, req recommend.Request) (*recommend.Answer, error)
}

// Items reads catalog items. The document is shared and must not be changed.
type Items interface {
	Read(ctx context.Context, req itemread.Request) (*itemread.Document, error)
}

// MaxBody is the greatest length of a body.
const MaxBody = 256 << 10

// callTimeout bounds the work for one request; recording signals gives up earlier by itself.
const callTimeout = 6 * time.Second

// Config is what a Server needs.
type Config struct {
	Keys            Keys
	Signals         Signals
	SignalCheck     *signalcheck.Service
	Recommendations Recommendations
	Items           Items
	SDK             sdkfiles.Files // nil: the browser SDK is not served
	RateLimiter     *ratelimit.Limiter
	Problems        *problem.Builder
	Metrics         *Metrics
	Logger          *slog.Logger
	Tracing         *tracing.Tracing      // nil: requests are not traced
	Top             *heavyhitters.Tracker // of Loads by connection; nil: they are not counted
	Now             func() time.Time
	TLS             *tls.Config // nil: the listener has no TLS

	TrustedProxies []netip.Prefix
	Beacon         bool // accept signals as text/plain with ?key=
	LogSample      int  // one in so many events below status 400 is logged; 0: none
	MaxBodyBytes   int  // of all bodies that are being read or in work; 0: 64 MiB
	MaxConnections int  // open at a time; 0: 4096
	// MaxConnectionsPerAddress bounds those of one address that is no trusted proxy; 0: no limit.
	MaxConnectionsPerAddress int

	WorkLimits   overload.Config // of all operations but catalog reads
	ReadLimits   overload.Config // of catalog reads
	AuthFailures ratelimit.Quota // for wrong keys from one address; the zero value: no limit
	ItemTTL      time.Duration   // how long clients may cache an item; in whole seconds
	Timeouts     Timeouts
}

// Timeouts are those of connections. Zero values mean the defaults.
type Timeouts struct{ Read, Write, Idle time.Duration }

// Server is the public listener.
type Server struct {
	cfg          Config
	eventLog     eventLog
	workLimiter  *overload.Limiter
	readLimiter  *overload.Limiter // of catalog reads, so that signals do not starve them
	authFailures *ratelimit.Limiter
	headers      responseHeaders
	router       *router
	bodies       bodyBudget
	conns        *connTable
	scratch      sync.Pool // of *signalsScratch
	http         *fasthttp.Server
	base         context.Context // the parent of every call; ends after the shutdown
	end          context.CancelFunc
	draining     atomic.Bool
}

// New returns a server that does not listen yet.
func New(c Config) *Server {
	s := &Server{
		cfg: c, router: newRouter(Routes()), eventLog: newEventLog(c.LogSample),
		workLimiter: overload.New(c.WorkLimits), readLimiter: overload.New(c.ReadLimits),
		authFailures: ratelimit.New(ratelimit.Config{PerAddress: c.AuthFailures, Now: c.Now}),
		headers: newResponseHeaders(c.RateLimiter.Policy(),
			"private, max-age="+strconv.Itoa(int(c.ItemTTL/time.Second))),
	}
	s.bodies.max = int64(cmp.Or(c.MaxBodyBytes, 64<<20))
	s.conns = newConnTable(cmp.Or(c.MaxConnections, 4096), c.MaxConnectionsPerAddress, c.TrustedProxies)
	s.scratch.New = func() any { return new(signalsScratch) }
	s.base, s.end = context.WithCancel(context.Background())
	s.http = newFastHTTP(c.Timeouts, s)
	return s
}

// newFastHTTP changes the defaults of the library that do not suit a public listener: no read deadline, parse
// errors that log the request header with its credential, bodies without a bound, multipart forms that are
// read ahead.
func newFastHTTP(t Timeouts, s *Server) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                      s.handle,
		ErrorHandler:                 s.handleReadError,
		ExpectHandler:                s.handleExpect,
		HeaderReceived:               s.admitBody,
		ConnState:                    connState,
		ReadTimeout:                  cmp.Or(t.Read, 10*time.Second),
		WriteTimeout:                 cmp.Or(t.Write, 10*time.Second),
		IdleTimeout:                  cmp.Or(t.Idle, 60*time.Second),
		ReadBufferSize:               readBuffer,
		WriteBufferSize:              writeBuffer,
		MaxRequestBodySize:           MaxBody,
		Concurrency:                  2 * s.conns.max, // never reached: the table refuses before
		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		SecureErrorLogMessage:        true,
		CloseOnShutdown:              true,
		TCPKeepalive:                 true,
		Logger:                       quietLogger{s},
	}
}

// readBuffer also bounds the size of a request's header.
const readBuffer = 8192

// writeBuffer takes nearly every answer of an item whole, so that it is one system call.
const writeBuffer = 8192

// Serve serves the listener until Shutdown.
func (s *Server) Serve(l net.Listener) error {
	own := newListener(l, s)
	defer own.running.Wait()
	return s.http.Serve(own)
}

// StartDraining makes every answer close its connection, so that clients open the next one elsewhere before
// balancers notice. A connection that its client has closed is not cut off in the middle of a request.
func (s *Server) StartDraining() { s.draining.Store(true) }

// Shutdown stops accepting, closes idle connections, and waits for running requests until ctx ends. Then it
// cancels the calls of those that still run.
func (s *Server) Shutdown(ctx context.Context) error {
	defer s.end()
	err := s.http.ShutdownWithContext(ctx)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// quietLogger counts what fasthttp would log, because its texts hold client addresses.
type quietLogger struct{ s *Server }

// Printf implements fasthttp.Logger.
func (q quietLogger) Printf(format string, _ ...any) {
	q.s.cfg.Metrics.connErrors.Inc()
	q.s.cfg.Logger.Debug("connection ended in an error", slog.String("kind", format))
}
