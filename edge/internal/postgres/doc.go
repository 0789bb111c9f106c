// Package postgres owns what the edge reads from PostgreSQL: what a storefront key opens and which items a
// connection has (schema control), and which signals are stored (schema relay). It reads the primary, because
// on a replica that lags a revoked key works, a stored signal looks new and an item is older than an answer.
// The role storefront_edge may not write.
package postgres
