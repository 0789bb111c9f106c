package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		fmt.Fprint(w, r.Header.Get("Accept-Encoding"))
	}))
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	a, err := client(t, Config{AllowedNetworks: local(),
		TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}).Do(t.Context(),
		Request{Method: http.MethodGet, URL: s.URL})
	if err != nil || string(a.Body) != "gzip" {
		t.Errorf("%+v, %v", a, err)
	}
}
