package httpapi

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/storekey"
)

// secret returns the storefront key of a request; it aliases fasthttp's buffers. A header wins over the
// query. The query counts only for a page-unload request: a beacon, which cannot send headers.
func (s *Server) secret(header *fasthttp.RequestHeader, route *Route, query []byte) ([]byte, error) {
	if auth := header.Peek(fasthttp.HeaderAuthorization); len(auth) > 0 {
		if token, ok := bearer(auth); ok {
			return token, nil
		}
		return nil, unauthorized()
	}
	if s.cfg.Beacon && route.beacon && mediaType(header.ContentType()) == textPlain {
		var args fasthttp.Args
		args.ParseBytes(query)
		if key := args.Peek("key"); len(key) > 0 {
			return key, nil
		}
	}
	return nil, unauthorized()
}

// resolve returns what a secret opens. An address that presented wrong keys too often gets a 429; keys that
// memory or Redis know are still accepted, because other clients behind the address did nothing wrong. A
// malformed key costs no look-up, so it is neither counted nor limited.
func (s *Server) resolve(rc *requestContext, secret []byte) (storekey.Grant, error) {
	if !storekey.WellFormed(secret) {
		return s.cfg.Keys.Resolve(&rc.callCtx, secret)
	}
	if wait := s.authFailures.Charge(ratelimit.Subject{Address: rc.client}, 0).Address.Wait; wait > 0 {
		if grant, ok := s.cfg.Keys.Known(&rc.callCtx, secret); ok {
			return grant, nil
		}
		s.cfg.Metrics.authRefused.Inc()
		f := fault.New(fault.RateLimited,
			"Too many requests with a wrong storefront key came from this address.")
		f.RetryAfter = wait
		return storekey.Grant{}, f
	}
	grant, err := s.cfg.Keys.Resolve(&rc.callCtx, secret)
	if fault.Is(err, fault.Unauthorized) {
		s.authFailures.Charge(ratelimit.Subject{Address: rc.client}, 1)
	}
	return grant, err
}

func unauthorized() error {
	return fault.New(fault.Unauthorized, "The storefront key is missing or not valid.")
}

// bearer reads "Bearer <token>", the scheme in any case.
func bearer(auth []byte) (token []byte, ok bool) {
	const scheme = "bearer "
	if len(auth) <= len(scheme) || !equalFold(auth[:len(scheme)], scheme) {
		return nil, false
	}
	token = bytes.TrimSpace(auth[len(scheme):])
	return token, len(token) > 0 && bytes.IndexByte(token, ' ') < 0
}

// The media types that a body may have.
const (
	applicationJSON = "application/json"
	textPlain       = "text/plain"
)

// mediaType returns which of the known media types a Content-Type names, whatever its parameters; "" is
// another one.
func mediaType(contentType []byte) string {
	name, _, _ := bytes.Cut(contentType, []byte(";"))
	name = bytes.TrimSpace(name)
	for _, known := range []string{applicationJSON, textPlain} {
		if equalFold(name, known) {
			return known
		}
	}
	return ""
}
