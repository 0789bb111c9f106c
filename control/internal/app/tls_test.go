package app

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"storefront.internal/shared/settings"
	"storefront.internal/shared/testkit"
)

// The internal surface speaks TLS; the operations port, which probes ask, does not.
func TestInternalSurfaceWithTLS(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	trusted := testkit.Certificate(t, folder, "control", time.Now().Add(time.Hour))
	b := newBundle(t, func(c *Config) {
		c.ServerTLS = settings.ServerTLS{CertFile: folder + "/tls.crt", KeyFile: folder + "/tls.key"}
	})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted},
		ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"https://"+b.app.Addr()+"/internal/v1/connections", strings.NewReader(`{"external_store_id":"shop"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+connectorToken)
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusCreated || res.Proto != "HTTP/1.1" {
		t.Errorf("%s %d %s", res.Proto, res.StatusCode, body)
	}
	for addr, want := range map[string]int{b.app.Addr(): http.StatusBadRequest,
		b.app.AdminAddr(): http.StatusOK} {
		res, err := http.Get("http://" + addr + "/livez")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s answers %d to plain HTTP, want %d", addr, res.StatusCode, want)
		}
	}
}
