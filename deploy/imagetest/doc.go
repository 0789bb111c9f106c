// Package imagetest runs what the container images hold, without a container engine: each unpacked image becomes the read-only
// root of a process that is nobody (65532) and can become nobody else, against real PostgreSQL, Redis and Kafka. Its tests are
// behind the build tag "images" because they need the images and root on Linux: `make images` builds the ones and says so
// without the other. What a container engine adds of its own (networks, cgroups, seccomp) is not shown here.
package imagetest
