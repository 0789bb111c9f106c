// Package systemtest runs whole deployments of the real binaries on real PostgreSQL, Redis and Kafka and shows what the product
// promises, with processes killed and stopped on the way. It has tests only: it looks at a deployment from outside (HTTP, the
// engine's door, the tables of the relay) and shares no rule with the production code, so that both have to be right.
package systemtest
