// Package helmtest tests the chart of helm/storefront without a cluster. The rendered objects are valid for
// Kubernetes and the CRDs, all references between them resolve, and the real binaries start with the
// arguments, environment and probes of the rendered containers. What a single template renders is tested by
// helm-unittest (helm/storefront/tests) and by the golden renders (helm/golden). The tests have the build tag
// helm and need the tools of `make helm-test`.
package helmtest
