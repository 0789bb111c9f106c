// Package outbound owns every request that control sends to a host which a merchant named: the guard against
// server-side request forgery, the bounds of time, size, decompression and memory, and the rate limiter of
// each shop.
//
// The guard has two halves. A URL must be https at port 443 and name a host of the public DNS in its plain
// form: no credentials, no address in any notation, no name of a private zone. And the dialer checks the
// address that it is about to connect to, after the name was resolved, so that a name that resolves to
// another address later gains nothing.
//
// A response is bounded by the kind of its call, after decompression: 16 MiB for a part of an export, which
// grows until an entity with all its lines fits; 4 MiB for a page, a product or an order (pages of 100 to 200
// entities have 1 to 3 MiB, and a smaller page is requested when one is larger); 1 MiB for everything else.
// All responses that are being read or decoded share one budget of bytes: a response waits for its part with
// the call's context and holds nothing meanwhile.
//
// A shop that lets three requests in a row run into their timeouts hangs: its calls fail at once, but for one
// at a time that looks whether it answers again, after pauses from 5 s to 5 min.
//
// Redirects and proxies of the environment are not followed. Errors hold nothing of a response, a header or a
// query.
package outbound
