package servercert

import (
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/settings"
	"storefront.internal/shared/testkit"
)

// listening is a TLS listener whose clock the test moves.
type listening struct {
	t      *testing.T
	folder string
	cert   *Certificate
	addr   string
	ahead  atomic.Int64 // of the real time
	log    testkit.Log
}

func (l *listening) now() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) }

// later moves the clock past the next look at the files.
func (l *listening) later() { l.ahead.Add(int64(lookEvery + time.Second)) }

func files(folder string) settings.ServerTLS {
	return settings.ServerTLS{CertFile: filepath.Join(folder, "tls.crt"),
		KeyFile: filepath.Join(folder, "tls.key")}
}

func listen(t *testing.T, folder string) *listening {
	t.Helper()
	l := &listening{t: t, folder: folder}
	var err error
	if l.cert, err = Load(Config{Files: files(folder), Logger: slog.New(slog.NewTextHandler(&l.log, nil)),
		Now: l.now}); err != nil {
		t.Fatal(err)
	}
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	secured := l.cert.Listener(raw)
	l.addr = raw.Addr().String()
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := secured.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				_ = c.(*tls.Conn).Handshake()
				c.Close()
			})
		}
	})
	t.Cleanup(func() {
		secured.Close()
		work.Wait()
	})
	return l
}

// served is the common name of the certificate that a new client is shown.
func (l *listening) served() string {
	l.t.Helper()
	c, err := tls.Dial("tcp", l.addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		l.t.Error(err)
		return ""
	}
	defer func() { _ = c.Close() }()
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName
}

func (l *listening) wantServed(name string) {
	l.t.Helper()
	if got := l.served(); got != name {
		l.t.Errorf("a client is shown %q, want %q", got, name)
	}
}

func inAYear() time.Time { return time.Now().Add(365 * 24 * time.Hour) }

func TestAChangedPairIsServed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	testkit.Certificate(t, folder, "first", inAYear())
	l := listen(t, folder)
	l.wantServed("first")
	testkit.Certificate(t, folder, "second", inAYear())
	l.wantServed("first") // the files were looked at a moment ago
	l.later()
	l.wantServed("second")
}

// A Secret's volume exchanges the folder that a link leads to; the paths of the settings stay.
func TestAnExchangedFolderIsServed(t *testing.T) {
	t.Parallel()
	volume := t.TempDir()
	for _, name := range []string{"one", "two"} {
		if err := os.Mkdir(filepath.Join(volume, name), 0o700); err != nil {
			t.Fatal(err)
		}
		testkit.Certificate(t, filepath.Join(volume, name), name, inAYear())
	}
	link := func(target string) {
		if err := os.Symlink(target, filepath.Join(volume, "new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(volume, "new"), filepath.Join(volume, "data")); err != nil {
			t.Fatal(err)
		}
	}
	link("one")
	l := listen(t, filepath.Join(volume, "data"))
	l.wantServed("one")
	link("two")
	l.later()
	l.wantServed("two")
}

func TestAPairThatCannotBeUsedLeavesTheOldOne(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, folder string){
		"not a certificate": func(t *testing.T, folder string) {
			write(t, files(folder).CertFile, "nonsense")
		},
		"empty": func(t *testing.T, folder string) {
			write(t, files(folder).KeyFile, "")
		},
		"removed": func(t *testing.T, folder string) {
			if err := os.Remove(files(folder).CertFile); err != nil {
				t.Fatal(err)
			}
		},
		"the key of another": func(t *testing.T, folder string) {
			other := t.TempDir()
			testkit.Certificate(t, other, "other", inAYear())
			key, err := os.ReadFile(files(other).KeyFile)
			if err != nil {
				t.Fatal(err)
			}
			write(t, files(folder).KeyFile, string(key)+"\n")
		},
		"expired": func(t *testing.T, folder string) {
			testkit.Certificate(t, folder, "expired", time.Now().Add(-time.Hour))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			testkit.Certificate(t, folder, "first", inAYear())
			l := listen(t, folder)
			damage(t, folder)
			for range 3 {
				l.later()
				l.wantServed("first")
			}
			if got := l.metric("storefront_tls_certificate_unusable"); got != 1 {
				t.Errorf("unusable is %v, want 1", got)
			}
			if n := strings.Count(l.log.String(), "cannot be used"); n != 1 {
				t.Errorf("%d lines of the log say so, want 1:\n%s", n, l.log.String())
			}
			testkit.Certificate(t, folder, "second", inAYear())
			l.later()
			l.wantServed("second")
			if got := l.metric("storefront_tls_certificate_unusable"); got != 0 {
				t.Errorf("unusable is %v after the mend, want 0", got)
			}
		})
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Without a client, reading the metrics finds the change.
func TestMetricsSeeTheNewExpiry(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	soon, late := time.Now().Add(time.Hour).Truncate(time.Second), inAYear().Truncate(time.Second)
	testkit.Certificate(t, folder, "first", soon)
	l := listen(t, folder)
	const expiry = "storefront_tls_certificate_expiry_timestamp_seconds"
	if got := l.metric(expiry); got != float64(soon.Unix()) {
		t.Errorf("expiry %v, want %v", got, soon.Unix())
	}
	testkit.Certificate(t, folder, "second", late)
	l.later()
	if got := l.metric(expiry); got != float64(late.Unix()) {
		t.Errorf("expiry %v, want %v", got, late.Unix())
	}
}

func (l *listening) metric(name string) float64 {
	l.t.Helper()
	r := prometheus.NewRegistry()
	Register(r, l.cert)
	families, err := r.Gather()
	if err != nil {
		l.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	l.t.Fatalf("there is no metric %s", name)
	return 0
}

func TestManyClientsWhileThePairChanges(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	testkit.Certificate(t, folder, "first", inAYear())
	l := listen(t, folder)
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 20 {
				l.later()
				if l.served() == "" {
					return
				}
			}
		})
	}
	for range 5 {
		testkit.Certificate(t, folder, "next", inAYear()) // two files, so that clients meet halves
	}
	clients.Wait()
	l.later()
	l.wantServed("next")
}

func TestOldVersionsOfTLSAreRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	trusted := testkit.Certificate(t, folder, "first", inAYear())
	l := listen(t, folder)
	for version, works := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true,
		tls.VersionTLS13: true} {
		c, err := tls.Dial("tcp", l.addr, &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS10,
			MaxVersion: version})
		if (err == nil) != works {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		if err == nil {
			_ = c.Close()
		}
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	if c, err := Load(Config{}); err != nil || c != nil || c.TLS() != nil {
		t.Errorf("without files: %v, %v", c, err)
	}
	folder := t.TempDir()
	_, err := Load(Config{Files: files(folder), Now: time.Now})
	if err == nil || !strings.Contains(err.Error(), "TLS_CERT_FILE") {
		t.Errorf("without the files that are named: %v", err)
	}
	testkit.Certificate(t, folder, "expired", time.Now().Add(-time.Hour))
	if _, err = Load(Config{Files: files(folder), Now: time.Now}); err == nil ||
		!strings.Contains(err.Error(), "expired at") {
		t.Errorf("an expired certificate: %v", err)
	}
}

func TestMetricsKeepTheConventions(t *testing.T) {
	t.Parallel()
	testkit.CheckMetrics(t, func(r prometheus.Registerer) { Register(r, nil) })
}
