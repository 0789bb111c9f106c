// Package e2e installs the chart on a real Kubernetes control plane (kube-apiserver, kube-controller-manager,
// kube-scheduler and etcd as local processes) with KWOK instead of nodes. Admission, the schemas of custom
// resources, controllers and Helm's waiting are real; kubelet, network plugin, KEDA, the Prometheus operator
// and gateways are not covered. The test runs the pods of Jobs itself: it waits for their Secrets and
// ConfigMaps, and runs the migration with the control binary that the image's tag selects, in the rendered
// environment, against a real PostgreSQL.
//
// It is a module of its own, outside of the workspace, to keep Kubernetes out of the services' dependencies:
// `make helm-e2e`.
package e2e
