// Package helmtest tests the chart of helm/storefront where no cluster is: what Helm renders is valid for Kubernetes and for the
// CRDs, equals the golden files, passes the Pod Security Standard "restricted", and fits the binaries (each container's own
// arguments, environment and probes start the real one). It owns no part of the chart. Tests that need the tools of
// `make helm-test` have the build tag helm; it refuses to skip one when a tool is missing.
package helmtest
