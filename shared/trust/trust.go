// Package trust owns which authorities a process believes: the public ones that are compiled in, and beside them what the system names,
// in SSL_CERT_FILE and SSL_CERT_DIR too.
//
// By itself the standard library takes either: a cluster's own authority would push the public ones out, and a service that speaks to
// both a database of the cluster and a shop's platform needs both. It refuses to take away: an authority of the system stays.
package trust

import (
	"crypto/x509"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// Public adds the public authorities to those of the system, for every connection of the process. A program calls it once, before its
// first connection, and has the line `//go:debug x509usefallbackroots=1`: without it the system's alone count where there are some.
func Public() { x509.SetFallbackRoots(authorities()) }

func authorities() *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	for root := range bundle.Roots() {
		cert, err := x509.ParseCertificate(root.Certificate)
		switch {
		case err != nil: // the bundle's own test reads each
		case root.Constraint == nil:
			pool.AddCert(cert)
		default:
			pool.AddCertWithConstraint(cert, root.Constraint)
		}
	}
	return pool
}
