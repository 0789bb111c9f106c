// Package redis owns what the edge keeps in Redis, and how: the claims of operation 1 and the registers of its
// attempts (claims.go, epoch.go), what storefront keys open (keys*.go), the copies of items (items.go), the client
// (client.go), and the pipelines that concurrent requests share (pipeline.go, breaker.go): batches of commands in wire
// format (resp.go, batch.go), which travel over connections of their own (link.go) or by the client to a cluster
// (cluster.go). Every command touches one key, so
// a cluster serves as well as a single server. It refuses to decide anything: package intake holds the claim protocol,
// package access the rules for keys, package itemread those for items. Nothing in Redis is the truth; when all of it is
// gone, answers are slower and nothing is lost.
package redis
