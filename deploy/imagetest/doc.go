// Package imagetest runs the services from their container images without a container engine, with real
// PostgreSQL, Redis and Kafka. Each unpacked image is the read-only root of a process with the user 65532 and
// without privileges. The tests have the build tag images and need root on Linux (`make images`). They do not
// cover the networks, cgroups and seccomp profiles of a container engine.
package imagetest
