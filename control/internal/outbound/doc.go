// Package outbound owns every request that control sends to a host which a merchant named: the guard against requests
// forged through a store's domain, the bounds of time, size and decompression, and the gate that keeps each store within
// the calls its provider grants it.
//
// The guard has two halves. A URL must be https on port 443 and name a host of the public DNS in its plain form: no
// credentials, no address in any notation, no name of a private zone. That half refuses early and says so; the other one
// cannot be fooled, because the dialer looks at the very address that it is about to connect to, after the resolver has
// answered, so that a name that resolves to another address the second time gains nothing.
//
// The package refuses to follow a redirect, to use a proxy of the environment, to log, and to put a byte of an answer, a
// header or a query into an error. What an answer means is the caller's business.
package outbound
