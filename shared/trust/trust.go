// Package trust owns the certificate authorities that a process trusts: the public ones that are compiled in,
// and those of the system, including SSL_CERT_FILE and SSL_CERT_DIR.
//
// The standard library uses either: the private authority of a cluster would replace the public ones, and a
// service that speaks to a database of the cluster and to the platform of a shop needs both. Authorities of
// the system are never removed.
package trust

import (
	"crypto/x509"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// UsePublicRoots adds the public authorities to those of the system, for all connections of the process. A
// program calls it once, before its first connection, and has the line `//go:debug x509usefallbackroots=1`;
// without it the roots of the system are used alone where there are any.
func UsePublicRoots() { x509.SetFallbackRoots(authorities()) }

func authorities() *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	for root := range bundle.Roots() {
		cert, err := x509.ParseCertificate(root.Certificate)
		switch {
		case err != nil: // cannot happen: the tests of the bundle parse each
		case root.Constraint == nil:
			pool.AddCert(cert)
		default:
			pool.AddCertWithConstraint(cert, root.Constraint)
		}
	}
	return pool
}
