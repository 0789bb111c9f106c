// Package pods runs the chart on a Kubernetes with running pods: etcd, the control plane, and two nodes
// with kubelet, kube-proxy, containerd and runc, each in network, mount and process namespaces of its own
// without a way out, so that everything ends with the test. `make k8s-e2e` builds what is needed, as root
// on Linux.
//
// The tests build on each other, in the order of TestCluster: the text of helm/examples/trial installs
// everything, then the release is disturbed under a constant load. Every request that was accepted must be
// at the engine once; where the chart promises an undisturbed service, no request may fail. A ticker
// measures stalls of the machine: a test with failures during a stall is repeated.
//
// The images of the services are those of `make images`. No registry is reached: curl, coredns and the
// stores are programs of this machine in images with the names that the manifests have (script standins).
// The network plugin does not enforce NetworkPolicies.
package pods
