// Package postgres owns what the edge reads of PostgreSQL: what a storefront key opens and which items a connection has
// (schema control), and which signals are stored (schema relay). It reads the primary, since a replica that lags would
// make a revoked key good, a known signal new and an item older than it was. It writes nothing: the role
// storefront_edge may not.
package postgres
