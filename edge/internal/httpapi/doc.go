// Package httpapi owns the public surface: routes, the order of the checks, CORS, problem bodies, and the one
// event that is logged of a request. A handler decodes, calls one use case and encodes. It is the only
// package of the edge that knows fasthttp.
//
// The checks of a request, cheapest first; the fourth is the first that may ask a store:
//
//	framing (400, close) → path and method (404, 405) → form of the credential (401) → key (401, 503) →
//	connection (403) → scope (403) → rate (429) → size, type and coding of the body (413, 400) →
//	overload (503) → handler
//
// Catalog reads have their own overload limit, so that a pile-up of signals does not starve them. Under
// overload, batches of impressions only are refused first and sales last (package overload). An address that
// presents wrong keys too often is answered 429, unless memory or Redis know the key.
//
// fasthttp reads a body before it calls the handler. So the header decides first whether the body is read:
// its length, route and framing must be right, the credential well-formed, and the process-wide budget of
// body bytes must have room. A body that is not read is answered in the order above, so that a client without
// a key learns 401 and neither 413 nor 503, and the connection is closed. Bodies of at most 4 KiB are always
// read. A chunked body that turns out too large is a 413 at once, because fasthttp has dropped its header by
// then.
//
// A connection beyond the limit, in total or of one address, is answered 503 or 429 and closed before a
// request is read. While more than three quarters are open, idle ones end after five seconds.
//
// A RequestCtx and every byte slice of it belong to fasthttp again when the handler returns. Nothing of it is
// kept, and it is never used as a context: calls get one of the server's own.
package httpapi
