package pods

import (
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"storefront.internal/helm/e2e/program"
)

// cluster is a control plane and its nodes. This process is on node 0.
type cluster struct {
	dir, tools, images, cni string
	programs                []*program.Program
	second                  string // process id of the first process of node 1
}

// newCluster starts the control plane and node 0, and waits until both are ready.
func newCluster(dir, tools, images, cni string) (*cluster, error) {
	c := &cluster{dir: dir, tools: tools, images: images, cni: cni}
	if err := c.credentials(); err != nil {
		return c, err
	}
	if err := c.startControlPlane(); err != nil {
		return c, err
	}
	if err := c.startNode(0); err != nil {
		return c, err
	}
	if _, err := kubectl("apply", "-f", "testdata/dns.yaml"); err != nil {
		return c, err
	}
	_, err := kubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=2m")
	return c, err
}

func (c *cluster) credentials() error {
	a, err := newAuthority(c.path("pki"))
	if err != nil {
		return err
	}
	service := "kubernetes.default.svc"
	err = errors.Join(
		a.issue("apiserver", pkix.Name{CommonName: "kube-apiserver"}, []string{"kubernetes",
			"kubernetes.default", service, service + ".cluster.local"}, "127.0.0.1", address(0), "10.96.0.1"),
		a.issue("service-accounts", pkix.Name{CommonName: "service-accounts"}, nil),
		a.issue("admin", pkix.Name{Organization: []string{"system:masters"}, CommonName: "admin"}, nil),
		a.kubeconfig(c.path("admin.kubeconfig"), "admin"))
	for n := range 2 {
		name := fmt.Sprintf("node-%d", n)
		err = errors.Join(err, a.issue(name, pkix.Name{Organization: []string{"system:nodes"},
			CommonName: "system:node:" + name}, []string{name}, address(n)),
			a.kubeconfig(c.path(name+".kubeconfig"), name))
	}
	return err
}

func (c *cluster) startControlPlane() error {
	const client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
	if err := c.start("etcd", c.tool("etcd"), "--data-dir="+c.path("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls="+client, "--advertise-client-urls="+client, "--listen-peer-urls="+peer,
		"--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer); err != nil {
		return err
	}
	pki := func(name string) string { return c.path("pki/" + name) }
	if err := c.component("kube-apiserver", "--etcd-servers="+client, "--bind-address=0.0.0.0",
		"--secure-port=6443", "--advertise-address="+address(0), "--cert-dir="+c.path("certs"),
		"--tls-cert-file="+pki("apiserver.crt"), "--tls-private-key-file="+pki("apiserver.key"),
		"--client-ca-file="+pki("ca.crt"), "--service-cluster-ip-range=10.96.0.0/16",
		"--authorization-mode=Node,RBAC", "--allow-privileged=true",
		"--kubelet-preferred-address-types=InternalIP", "--kubelet-certificate-authority="+pki("ca.crt"),
		"--kubelet-client-certificate="+pki("admin.crt"), "--kubelet-client-key="+pki("admin.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+pki("service-accounts.pub"),
		"--service-account-signing-key-file="+pki("service-accounts.key")); err != nil {
		return err
	}
	if err := program.Wait(3*time.Minute, func() error {
		if err := c.alive(); err != nil {
			return err
		}
		_, err := kubectl("get", "--raw", "/readyz")
		return err
	}); err != nil {
		return err
	}
	admin := c.path("admin.kubeconfig")
	common := []string{"--kubeconfig=" + admin, "--authentication-kubeconfig=" + admin,
		"--authorization-kubeconfig=" + admin, "--leader-elect=false", "--secure-port=0"}
	return errors.Join(c.component("kube-scheduler", common...),
		c.component("kube-controller-manager", append(common, "--cluster-cidr=10.244.0.0/16",
			"--service-account-private-key-file="+pki("service-accounts.key"),
			"--root-ca-file="+pki("ca.crt"))...))
}

// startNode starts containerd, kubelet and kube-proxy on a node, and waits until it is ready.
func (c *cluster) startNode(n int) error {
	dir := c.path(fmt.Sprintf("node-%d", n))
	if err := errors.Join(c.configure(n, dir), controlGroups(n)); err != nil {
		return err
	}
	name := fmt.Sprintf("node-%d", n)
	if err := c.startOn(n, "containerd", "containerd", "-c", dir+"/containerd.toml"); err != nil {
		return err
	}
	if err := program.Wait(time.Minute, func() error { return c.on(n, "ctr", "version") }); err != nil {
		return err
	}
	if err := c.importImages(n); err != nil {
		return err
	}
	kubernetes := c.tool("kubernetes")
	if err := errors.Join(
		c.startOn(n, "kubelet", kubernetes, "kubelet", "--config="+dir+"/kubelet.yaml",
			"--kubeconfig="+c.path(name+".kubeconfig"), "--hostname-override="+name, "--node-ip="+address(n),
			"--root-dir=/var/lib/kubelet", "--cert-dir="+dir+"/certs",
			"--node-labels=topology.kubernetes.io/zone=zone-"+strconv.Itoa(n)),
		c.startOn(n, "kube-proxy", kubernetes, "kube-proxy", "--config="+dir+"/kube-proxy.yaml",
			"--hostname-override="+name)); err != nil {
		return err
	}
	if _, err := kubectl("wait", "--for=create", "node/"+name, "--timeout=2m"); err != nil {
		return errors.Join(err, c.alive())
	}
	_, err := kubectl("wait", "--for=condition=Ready", "node/"+name, "--timeout=2m")
	return err
}

// configure writes the files of testdata with the values of the node.
func (c *cluster) configure(n int, dir string) error {
	values := map[string]string{"DIR": dir, "CNI": c.cni, "NODE": strconv.Itoa(n), "ADDRESS": address(n),
		"PKI": c.path("pki")}
	values["ADMIN"] = c.path("admin.kubeconfig")
	for from, to := range map[string]string{"containerd.toml": "containerd.toml",
		"kubelet.yaml": "kubelet.yaml", "kube-proxy.yaml": "kube-proxy.yaml",
		"cni.conflist": "cni/10-bridge.conflist"} {
		text, err := os.ReadFile("testdata/" + from)
		if err != nil {
			return err
		}
		file := filepath.Join(dir, to)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		filled := os.Expand(string(text), func(name string) string { return values[name] })
		if err := os.WriteFile(file, []byte(filled), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// controlGroups makes the root of the node's groups, under both versions of control groups. The pods of a
// node together have ten times the share of a thread beside them: what makes the cluster runs on machines of
// its own elsewhere, and would take the CPUs of the pods here.
func controlGroups(n int) error {
	name := fmt.Sprintf("storefront-e2e-%d", n)
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return errors.Join(os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+cpu"), 0o644),
			os.MkdirAll("/sys/fs/cgroup/"+name, 0o755),
			os.WriteFile("/sys/fs/cgroup/"+name+"/cpu.weight", []byte("1000"), 0o644))
	}
	controllers := strings.Fields("cpu cpuacct cpuset memory devices freezer blkio pids systemd")
	for _, controller := range controllers {
		if err := os.MkdirAll(filepath.Join("/sys/fs/cgroup", controller, name), 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile("/sys/fs/cgroup/cpu/"+name+"/cpu.shares", []byte("10240"), 0o644); err != nil {
		return err
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		text, err := os.ReadFile("/sys/fs/cgroup/cpuset/" + file)
		if err != nil {
			return err
		}
		if err := os.WriteFile("/sys/fs/cgroup/cpuset/"+name+"/"+file, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// importImages gives containerd the images. Those of our services carry no name of their own.
func (c *cluster) importImages(n int) error {
	archives, err := filepath.Glob(filepath.Join(c.images, "*.tar"))
	if err != nil {
		return err
	}
	for _, archive := range archives {
		name := strings.TrimSuffix(filepath.Base(archive), ".tar")
		args := []string{"-n", "k8s.io", "images", "import"}
		service, isPrevious := strings.CutPrefix(name, "previous-")
		switch tag := map[bool]string{true: "previous", false: "0.1.0"}[isPrevious]; service {
		case "edge", "control", "engine-relay", "demoengine":
			args = append(args, "--index-name", "ghcr.io/storefront/"+service+":"+tag)
		}
		if err := c.on(n, append([]string{"ctr"}, append(args, archive)...)...); err != nil {
			return err
		}
	}
	return nil
}

// addNode starts node 1 in namespaces of its own and connects it to node 0.
func (c *cluster) addNode() error {
	p, err := program.Start(c.dir, "node-1", "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child",
		"--mount-proc", mustAbs("node"), "1", c.dir, "sleep", "infinity")
	if err != nil {
		return err
	}
	c.programs = append(c.programs, p)
	if err := program.Wait(20*time.Second, func() error {
		if _, err := os.Stat(c.path("node-1/ready")); err != nil {
			return errors.Join(err, p.Alive())
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.ID(), p.ID()))
		c.second = strings.TrimSpace(string(text))
		return err
	}); err != nil {
		return err
	}
	for _, line := range []string{
		"ip link add veth1 type veth peer name eth0 netns " + c.second,
		"ip link set veth1 master node0 up",
		"ip route add 10.244.1.0/24 via 10.89.0.2",
	} {
		if err := c.on(0, "sh", "-c", line); err != nil {
			return err
		}
	}
	for _, line := range []string{
		"ip addr add 10.89.0.2/24 dev eth0", "ip link set eth0 up",
		"ip route add 10.244.0.0/24 via 10.89.0.1", "ip route add 10.96.0.0/16 via 10.89.0.1",
	} {
		if err := c.on(1, "sh", "-c", line); err != nil {
			return err
		}
	}
	return c.startNode(1)
}

// command returns the command line that runs a program on a node.
func (c *cluster) command(n int, args ...string) []string {
	if n == 0 {
		return args
	}
	return append([]string{"nsenter", "-t", c.second, "-n", "-m", "-p", "--"}, args...)
}

func (c *cluster) on(n int, args ...string) error {
	line := c.command(n, args...)
	out, err := exec.Command(line[0], line[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (c *cluster) startOn(n int, name string, args ...string) error {
	line := c.command(n, args...)
	return c.start(fmt.Sprintf("%s-%d", name, n), line[0], line[1:]...)
}

func (c *cluster) component(name string, args ...string) error {
	return c.start(name, c.tool("kubernetes"), append([]string{name}, args...)...)
}

func (c *cluster) start(name, path string, args ...string) error {
	p, err := program.Start(c.dir, name, path, args...)
	if err == nil {
		c.programs = append(c.programs, p)
	}
	return err
}

func (c *cluster) alive() error {
	for _, p := range c.programs {
		if err := p.Alive(); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) path(name string) string { return filepath.Join(c.dir, name) }

func (c *cluster) tool(name string) string { return program.Tool(c.tools, name) }

// address returns the address of a node.
func address(n int) string { return fmt.Sprintf("10.89.0.%d", n+1) }

func mustAbs(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		panic(err) // the working directory is gone
	}
	return abs
}

// kubectl runs kubectl as administrator and returns what it prints.
func kubectl(args ...string) (string, error) { return run("kubectl", args...) }

// helm runs helm in the namespace of the trial.
func helm(args ...string) (string, error) {
	return run("helm", append(args, "--namespace="+namespace)...)
}

func run(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
