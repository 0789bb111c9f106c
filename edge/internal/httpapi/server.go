package httpapi

import (
	"context"
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
	"storefront.internal/shared/problem"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/storekey"
	"storefront.internal/shared/tracing"
)

// Keys answers what a storefront key opens. Its errors are the faults unauthorized and service_unavailable. It must
// not keep the secret.
type Keys interface {
	Resolve(ctx context.Context, secret []byte) (storekey.Grant, error)
	// Remembered answers what is known without any look-up.
	Remembered(secret []byte) (storekey.Grant, bool)
}

// Signals is the use case of operation 1. It calls charge once, with the number of signals. It must not keep the body;
// the results may point into it.
type Signals interface {
	Record(ctx context.Context, req intake.Request, charge func(n int)) ([]signal.Result, error)
}

// Recommendations is the use case of operation E1. It must not keep the body.
type Recommendations interface {
	Recommend(ctx context.Context, req recommend.Request) (*recommend.Answer, error)
}

// Items is the use case of operation 2. The document is shared, and nothing of it is changed.
type Items interface {
	Read(ctx context.Context, req itemread.Request) (*itemread.Document, error)
}

// MaxBody is the greatest length of a body (contract, section 1 "Body limits").
const MaxBody = 256 << 10

// callTimeout bounds the work for one request; operation 1 gives up earlier by itself.
const callTimeout = 6 * time.Second

// Config is what a Server needs.
type Config struct {
	Keys            Keys
	Signals         Signals
	Recommendations Recommendations
	Items           Items
	Limiter         *ratelimit.Limiter
	Problems        *problem.Builder
	Metrics         *Metrics
	Logger          *slog.Logger
	Tracing         *tracing.Tracing // nil: requests are not traced
	Now             func() time.Time

	TrustedProxies []netip.Prefix
	Beacon         bool            // text/plain with ?key= on operation 1
	LogSample      int             // one event in so many is logged below status 500; 0 logs none
	Work           overload.Config // what may be in work at once, without reads of the catalog
	Reads          overload.Config // of the catalog
	Failures       ratelimit.Quota // of a wrong key from one address; the zero value: no limit
	ItemTTL        time.Duration   // what clients may keep an item for; in whole seconds
	Timeouts       Timeouts
}

// Timeouts are those of connections. The zero value means the defaults.
type Timeouts struct{ Read, Write, Idle time.Duration }

// Server is the public listener.
type Server struct {
	keys            Keys
	signals         Signals
	recommendations Recommendations
	items           Items
	limiter         *ratelimit.Limiter
	problems        *problem.Builder
	metrics         *Metrics
	log             *slog.Logger
	tracing         *tracing.Tracing
	now             func() time.Time
	trusted         []netip.Prefix
	beacon          bool
	sample          sampler
	turns           *overload.Turns
	reads           *overload.Turns // of the catalog, so that signals do not starve it
	failures        *ratelimit.Failures
	itemCaching     string // Cache-Control of an item
	router          *router
	answers         sync.Pool // of *answer
	http            *fasthttp.Server
	base            context.Context // the parent of every call; ends after the drain
	end             context.CancelFunc
	leaving         atomic.Bool
}

// New returns a server that does not listen yet.
func New(c Config) *Server {
	s := &Server{
		keys: c.Keys, signals: c.Signals, recommendations: c.Recommendations, items: c.Items, limiter: c.Limiter, problems: c.Problems,
		metrics: c.Metrics, log: c.Logger, tracing: c.Tracing, now: c.Now, trusted: c.TrustedProxies, beacon: c.Beacon,
		sample: sampler{every: c.LogSample}, router: newRouter(Routes()),
		turns: overload.New(c.Work), reads: overload.New(c.Reads), failures: ratelimit.NewFailures(c.Failures, c.Now),
		itemCaching: "private, max-age=" + strconv.Itoa(int(c.ItemTTL/time.Second)),
	}
	s.answers.New = func() any { return new(answer) }
	s.base, s.end = context.WithCancel(context.Background())
	s.http = newFastHTTP(c.Timeouts, s)
	return s
}

// newFastHTTP holds the settings that the library's defaults get wrong for a public listener: no read deadline, parse
// errors that log the request's head with its credential, bodies without a bound, multipart forms read ahead.
func newFastHTTP(t Timeouts, s *Server) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                      s.handle,
		ErrorHandler:                 s.handleReadError,
		ExpectHandler:                s.handleExpect,
		ReadTimeout:                  orDefault(t.Read, 10*time.Second),
		WriteTimeout:                 orDefault(t.Write, 10*time.Second),
		IdleTimeout:                  orDefault(t.Idle, 60*time.Second),
		ReadBufferSize:               readBuffer,
		MaxRequestBodySize:           MaxBody,
		Concurrency:                  4096,
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

func orDefault(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return fallback
}

// Serve serves the listener until Shutdown.
func (s *Server) Serve(l net.Listener) error { return s.http.Serve(l) }

// Leave asks every client that still sends to open its next connection elsewhere. Balancers learn it later than clients
// do, and a connection that nobody uses any more can be closed without a request being on its way.
func (s *Server) Leave() { s.leaving.Store(true) }

// Shutdown stops accepting, closes idle connections, and waits for running requests until ctx ends. Then the calls of
// those that still run are cancelled.
func (s *Server) Shutdown(ctx context.Context) error {
	defer s.end()
	err := s.http.ShutdownWithContext(ctx)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// quietLogger counts what fasthttp would log: its texts hold client addresses.
type quietLogger struct{ s *Server }

// Printf implements fasthttp.Logger.
func (q quietLogger) Printf(format string, _ ...any) {
	q.s.metrics.server.Inc()
	q.s.log.Debug("connection ended in an error", slog.String("kind", format))
}
