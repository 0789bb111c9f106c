// Package systemtest runs whole deployments of the real binaries on a real PostgreSQL, Redis and Kafka, kills
// and pauses processes, and checks what the product promises. It looks at a deployment from outside (HTTP,
// the requests to the engine, the tables) and shares no rule with the production code: an error would have to
// be made twice to stay hidden.
package systemtest
