// Package e2e installs the chart on a real Kubernetes control plane: kube-apiserver, kube-controller-manager, kube-scheduler
// and etcd, as programs on the loopback interface, with KWOK in the place of nodes. So admission, the schemas of custom
// resources, controllers and Helm's waiting are real; what a kubelet, a network plugin, KEDA, the Prometheus operator or a
// gateway make of the objects is not shown. Jobs are run by the test itself: it waits like a kubelet for the Secrets and
// ConfigMaps that a pod names, and runs the migration with the control binary that the image's tag stands for, in exactly the
// environment that was rendered, against a real PostgreSQL.
//
// It is a module of its own, not in the workspace, so that nothing of Kubernetes gets near the services: `make helm-e2e`.
package e2e
