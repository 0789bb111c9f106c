// Package servercert owns the certificate of a listener: a pair of PEM files that is loaded at the start and
// again when the files change, as cert-manager and Secrets of Kubernetes change them.
//
// The files are looked at when a client connects or the metrics are read, at most once in ten seconds. A new
// pair that cannot be used leaves the old one in service; a metric and the log say so until the files are
// good again.
package servercert

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/settings"
)

// lookEvery is the least time between two looks at the files.
const lookEvery = 10 * time.Second

// Config configures a Certificate.
type Config struct {
	Files  settings.ServerTLS
	Logger *slog.Logger
	Now    func() time.Time
}

// Certificate is a pair of files and what was last read from them.
type Certificate struct {
	cfg     Config
	current atomic.Pointer[tls.Certificate]
	stale   atomic.Bool
	next    atomic.Int64 // when the files are looked at again, in nanoseconds

	mu   sync.Mutex
	seen states // of the files when they were read last, also when they could not be used
}

// states are those of the two files; nil for one that cannot be found. A Secret's volume exchanges whole
// folders, so that the path of a file leads to another one, which may have the same time and size.
type states [2]os.FileInfo

func (a states) equal(b states) bool {
	for i := range a {
		if a[i] == nil || b[i] == nil {
			if a[i] != b[i] {
				return false
			}
		} else if !os.SameFile(a[i], b[i]) || !a[i].ModTime().Equal(b[i].ModTime()) ||
			a[i].Size() != b[i].Size() {
			return false
		}
	}
	return true
}

// Load reads the pair. Without files it returns nil: the listener has no TLS.
func Load(cfg Config) (*Certificate, error) {
	if !cfg.Files.Enabled() {
		return nil, nil
	}
	c := &Certificate{cfg: cfg}
	c.seen = c.states()
	pair, err := c.read()
	if err != nil {
		return nil, err
	}
	c.current.Store(pair)
	c.next.Store(cfg.Now().Add(lookEvery).UnixNano())
	return c, nil
}

// TLS returns the configuration of a listener, or nil without a certificate. HTTP/2 is left out: the
// listeners count and bound connections of HTTP/1.1.
func (c *Certificate) TLS() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c.look()
			return c.current.Load(), nil
		}}
}

// look reads the files again when they changed. One goroutine looks; the others go on with what there is.
func (c *Certificate) look() {
	now, due := c.cfg.Now(), c.next.Load()
	if now.UnixNano() < due || !c.next.CompareAndSwap(due, now.Add(lookEvery).UnixNano()) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.states()
	if seen.equal(c.seen) && !c.stale.Load() {
		return
	}
	pair, err := c.read()
	if err == nil {
		c.current.Store(pair)
		c.stale.Store(false)
		c.cfg.Logger.Info("certificate loaded", "file", c.cfg.Files.CertFile, "not_after", pair.Leaf.NotAfter)
	} else if c.stale.Store(true); !seen.equal(c.seen) {
		c.cfg.Logger.Error("the changed certificate cannot be used, the old one stays", "error", err)
	}
	c.seen = seen
}

func (c *Certificate) states() (s states) {
	for i, file := range []string{c.cfg.Files.CertFile, c.cfg.Files.KeyFile} {
		if info, err := os.Stat(file); err == nil {
			s[i] = info
		}
	}
	return s
}

// read fails also for a certificate that has expired: the one in service can be no worse.
func (c *Certificate) read() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.cfg.Files.CertFile, c.cfg.Files.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("TLS_CERT_FILE and TLS_KEY_FILE: %w", err)
	}
	if end := pair.Leaf.NotAfter; c.cfg.Now().After(end) {
		return nil, fmt.Errorf("TLS_CERT_FILE: the certificate expired at %s", end.UTC().Format(time.RFC3339))
	}
	return &pair, nil
}

// Listener puts TLS on the connections of a listener; without a certificate it returns the listener itself.
func (c *Certificate) Listener(l net.Listener) net.Listener {
	if c == nil {
		return l
	}
	return tls.NewListener(l, c.TLS())
}

// Register registers the metrics of a certificate; nil: the listener has no TLS, and both are 0.
func Register(r prometheus.Registerer, c *Certificate) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "storefront_tls_certificate_expiry_timestamp_seconds",
		Help: "Time at which the certificate that the listener uses expires; 0: the listener has no TLS.",
	}, c.expiry), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "storefront_tls_certificate_unusable",
		Help: "1 while the files of the listener's certificate changed and cannot be used: " +
			"the pair before stays in service.",
	}, c.unusable))
}

func (c *Certificate) expiry() float64 {
	if c == nil {
		return 0
	}
	c.look()
	return float64(c.current.Load().Leaf.NotAfter.Unix())
}

func (c *Certificate) unusable() float64 {
	if c == nil {
		return 0
	}
	c.look()
	if c.stale.Load() {
		return 1
	}
	return 0
}
