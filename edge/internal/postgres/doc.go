// Package postgres owns what the edge reads of PostgreSQL: what a storefront key opens (schema control), and which
// signals are stored (schema relay). It reads the primary, since a replica that lags would make a revoked key good and
// a known signal new. It writes nothing: the role storefront_edge may not.
package postgres
