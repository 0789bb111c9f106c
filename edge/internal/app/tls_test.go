package app

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"strings"
	"testing"
	"time"

	"storefront.internal/shared/settings"
	"storefront.internal/shared/testkit"
)

// The public surface speaks TLS and follows a changed pair; the operations port, which probes ask, does not.
func TestPublicSurfaceWithTLS(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	trusted := testkit.Certificate(t, folder, "first", time.Now().Add(time.Hour))
	e := prepare(t)
	e.cfg.ServerTLS = settings.ServerTLS{CertFile: folder + "/tls.crt", KeyFile: folder + "/tls.key"}
	e.run() // asks /readyz
	if status, err := health(e, trusted); status != http.StatusOK {
		t.Fatalf("%d %v", status, err)
	}
	if status := e.get(e.app.PublicAddr(), "/healthz"); status != http.StatusBadRequest {
		t.Errorf("plain HTTP is answered %d", status)
	}
	renewed := testkit.Certificate(t, folder, "second", time.Now().Add(2*time.Hour))
	e.within(time.Minute, "clients that trust the new certificate only are served", func() bool {
		time.Sleep(100 * time.Millisecond)
		status, _ := health(e, renewed)
		return status == http.StatusOK
	})
	if _, err := health(e, trusted); err == nil {
		t.Error("the old certificate is still served")
	}
}

// health asks over a new connection.
func health(e *edge, trusted *x509.CertPool) (int, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	res, err := client.Get("https://" + e.app.PublicAddr() + "/healthz")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	return res.StatusCode, nil
}

func TestACertificateThatCannotBeLoadedEndsTheStart(t *testing.T) {
	t.Parallel()
	_, err := Load([]string{"EDGE_TLS_KEY_FILE=/k"})
	wantText(t, err, "EDGE_TLS_CERT_FILE: and TLS_KEY_FILE are set together")
	cfg := prepare(t).cfg
	cfg.ServerTLS = settings.ServerTLS{CertFile: "/nowhere/tls.crt", KeyFile: "/nowhere/tls.key"}
	_, err = New(t.Context(), cfg, nil)
	wantText(t, err, "EDGE_TLS_CERT_FILE and TLS_KEY_FILE: open /nowhere/tls.crt")
}

func wantText(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}
