// Package httpapi owns the public surface: routes, the order of checks, CORS, problems, and the one event that is
// logged of a request (contract, sections 1 and 2). A handler decodes, calls one use case and encodes; what a use case
// does is not known here. It is the only package that knows fasthttp.
//
// The checks of a request, cheapest first; nothing touches a store before the fourth:
//
//	framing (400, close) → path and method (404, 405) → form of the credential (401) → what the key opens (401, 503) →
//	connection (403) → scope (403) → rate (429) → size, type and coding of the body (413, 400) → overload (503) → handler
//
// Reads of the catalog have a limit of their own, so that signals that pile up do not starve them. Signals and
// recommendations take turns (package overload): batches of impressions only are refused first, sales last.
//
// A client whose keys are wrong too often is answered 429 before anything is looked up for it.
//
// fasthttp reads a body before it calls the handler. One that is declared too large is refused before it is read, but
// by way of the same checks, so that a stranger learns 401 and not 413. One that turns out too large chunk by chunk is
// a 413 at once: its header is gone by then.
//
// A RequestCtx and every byte slice that it gives out belong to fasthttp again when the handler returns. So nothing of
// it is kept, and it is never a context: calls get one of the server's own.
package httpapi
