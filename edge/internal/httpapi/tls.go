package httpapi

import (
	"crypto/tls"
	"errors"
	"net"
	"time"

	"storefront.internal/shared/fault"
)

// secure puts TLS on an accepted connection, if the server has a certificate. The handshake is part of the
// first read, so that a client that delays it holds up nobody else and is bounded by the read timeout.
func (s *Server) secure(accepted net.Conn) net.Conn {
	if s.cfg.TLS == nil {
		return accepted
	}
	return &tlsConn{Conn: tls.Server(accepted, s.cfg.TLS), server: s}
}

// tlsConn answers a client that speaks plain HTTP before the connection ends; without an answer it would see
// five bytes of a TLS alert.
type tlsConn struct {
	*tls.Conn
	server *Server
}

// Read implements net.Conn.
func (c *tlsConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	var header tls.RecordHeaderError
	if errors.As(err, &header) && header.Conn != nil && looksLikeHTTP(header.RecordHeader) {
		_ = header.Conn.SetWriteDeadline(time.Now().Add(refusalWait))
		c.server.writeProblemTo(header.Conn, fault.New(fault.InvalidRequest,
			"This port speaks TLS only: use https."), "")
	}
	return n, err
}

// looksLikeHTTP reports whether the first bytes of a connection begin the line of a request.
func looksLikeHTTP(first [5]byte) bool {
	switch string(first[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		return true
	}
	return false
}
