package httpapi

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/storekey"
)

// secret returns the storefront key that the request presents; it aliases fasthttp's buffers. A header wins over the
// query, and the query counts only for a page-unload request (contract, section 2 "Page unload").
func (s *Server) secret(x *exchange) ([]byte, error) {
	header := &x.ctx.Request.Header
	if auth := header.Peek(fasthttp.HeaderAuthorization); len(auth) > 0 {
		if token, ok := bearer(auth); ok {
			return token, nil
		}
		return nil, unauthorized()
	}
	if s.beacon && x.route.beacon && mediaType(header.ContentType()) == textPlain {
		var args fasthttp.Args
		args.ParseBytes(x.query)
		if key := args.Peek("key"); len(key) > 0 {
			return key, nil
		}
	}
	return nil, unauthorized()
}

// resolve answers what a secret opens. A client that guessed wrong too often is told to wait before anything is looked
// up for it; keys that need no look-up go on, since the others behind its address did nothing wrong.
func (s *Server) resolve(x *exchange, secret []byte) (storekey.Grant, error) {
	if wait := s.failures.Wait(x.client); wait > 0 {
		if grant, ok := s.keys.Remembered(secret); ok {
			return grant, nil
		}
		s.metrics.guesses.Inc()
		f := fault.New(fault.RateLimited, "Too many requests with a wrong storefront key came from this address.")
		f.RetryAfter = wait
		return storekey.Grant{}, f
	}
	grant, err := s.keys.Resolve(x.call, secret)
	if fault.Is(err, fault.Unauthorized) {
		s.failures.Note(x.client)
	}
	return grant, err
}

func unauthorized() error {
	return fault.New(fault.Unauthorized, "The storefront key is missing or not valid.")
}

// bearer reads "Bearer <token>", the scheme in any case.
func bearer(auth []byte) (token []byte, ok bool) {
	const scheme = "bearer "
	if len(auth) <= len(scheme) || !is(auth[:len(scheme)], scheme) {
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

// mediaType returns which of the known media types a Content-Type names, whatever its parameters; "" is another one.
func mediaType(contentType []byte) string {
	name, _, _ := bytes.Cut(contentType, []byte(";"))
	name = bytes.TrimSpace(name)
	for _, known := range []string{applicationJSON, textPlain} {
		if is(name, known) {
			return known
		}
	}
	return ""
}
