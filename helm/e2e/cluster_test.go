package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"storefront.internal/helm/e2e/program"
)

// cluster is a control plane with fake nodes.
type cluster struct {
	dir, tools string
	kubeconfig string
	api        *api
	programs   []*program.Program
}

// The API server rejects a loopback address; this one is reserved for documentation.
const advertised = "192.0.2.1"

// newCluster starts everything and waits until the nodes are ready.
func newCluster(dir, tools string) (c *cluster, err error) {
	c = &cluster{dir: dir, tools: tools, kubeconfig: filepath.Join(dir, "kubeconfig")}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	if err := c.startServer(); err != nil {
		return c, err
	}
	for name, args := range map[string][]string{
		"kube-controller-manager": {"--kubeconfig=" + c.kubeconfig,
			"--authentication-kubeconfig=" + c.kubeconfig,
			"--authorization-kubeconfig=" + c.kubeconfig, "--leader-elect=false", "--secure-port=0",
			"--service-account-private-key-file=" + c.path("sa.key"), "--root-ca-file=" +
				c.path("certs/apiserver.crt")},
		"kube-scheduler": {"--kubeconfig=" + c.kubeconfig, "--authentication-kubeconfig=" + c.kubeconfig,
			"--authorization-kubeconfig=" + c.kubeconfig, "--leader-elect=false", "--secure-port=0"},
	} {
		if err := c.start(name, c.tool("kubernetes"), append([]string{name}, args...)...); err != nil {
			return c, err
		}
	}
	return c, c.startNodes()
}

// startServer starts etcd and the API server.
func (c *cluster) startServer() error {
	client, err := freePort()
	if err != nil {
		return err
	}
	peer, err := freePort()
	if err != nil {
		return err
	}
	secure, err := freePort()
	if err != nil {
		return err
	}
	etcd, peers := fmt.Sprintf("http://127.0.0.1:%d", client), fmt.Sprintf("http://127.0.0.1:%d", peer)
	if err := c.start("etcd", c.tool("etcd"), "--data-dir="+c.path("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers,
		"--initial-cluster=default="+peers); err != nil {
		return err
	}
	token, err := c.credentials(secure)
	if err != nil {
		return err
	}
	if err := c.start("kube-apiserver", c.tool("kubernetes"), "kube-apiserver", "--etcd-servers="+etcd,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d",
			secure), "--advertise-address="+advertised, "--cert-dir="+c.path("certs"),
		"--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=RBAC", "--allow-privileged=true",
		"--token-auth-file="+c.path("tokens.csv"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+c.path("sa.pub"),
		"--service-account-signing-key-file="+c.path("sa.key")); err != nil {
		return err
	}
	return program.Wait(3*time.Minute, func() error {
		if err := c.alive(); err != nil {
			return err
		}
		if c.api == nil {
			pool, err := certificates(c.path("certs/apiserver.crt"))
			if err != nil {
				return err
			}
			c.api = newAPI(fmt.Sprintf("https://127.0.0.1:%d", secure), token, pool)
		}
		return c.api.call(http.MethodGet, "/readyz", nil, nil)
	})
}

// startNodes starts KWOK with its usual stages of nodes and pods, without the completion of Jobs.
func (c *cluster) startNodes() error {
	stages, err := moduleDir("sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	args := []string{"--kubeconfig=" + c.kubeconfig, "--manage-all-nodes=true", "--node-port=0",
		"--node-lease-duration-seconds=40"}
	for _, stage := range []string{"node/fast/node-initialize",
		"node/heartbeat-with-lease/node-heartbeat-with-lease", "pod/fast/pod-ready", "pod/fast/pod-delete"} {
		args = append(args, "--config="+filepath.Join(stages, "kustomize/stage", stage+".yaml"))
	}
	if err := c.start("kwok", c.tool("kwok"), args...); err != nil {
		return err
	}
	for i := range 3 {
		name := fmt.Sprintf("node-%d", i)
		room := object{"cpu": "32", "memory": "64Gi", "pods": "110"}
		if err := c.api.create("/api/v1/nodes", object{
			"apiVersion": "v1", "kind": "Node",
			"metadata": object{"name": name, "labels": object{
				"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
				"topology.kubernetes.io/zone": fmt.Sprintf("zone-%d", i),
			}},
			"status": object{"allocatable": room, "capacity": room},
		}); err != nil {
			return err
		}
	}
	return program.Wait(2*time.Minute, func() error {
		var nodes list
		if err := c.api.get("/api/v1/nodes", &nodes); err != nil {
			return err
		}
		for _, n := range nodes.Items {
			if condition(n, "Ready") != "True" {
				return fmt.Errorf("node %s is not ready: %w", n.name(), c.alive())
			}
		}
		return c.alive()
	})
}

// credentials writes the kubeconfig of an administrator, and the keys of service accounts.
func (c *cluster) credentials(port int) (token string, err error) {
	secret := make([]byte, 24)
	_, _ = rand.Read(secret)
	token = hex.EncodeToString(secret)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return "", err
	}
	kubeconfig := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"e2e",
"clusters":[{"name":"e2e","cluster":{"server":"https://127.0.0.1:%d","certificate-authority":%q}}],
"users":[{"name":"admin","user":{"token":%q}}],
"contexts":[{"name":"e2e","context":{"cluster":"e2e","user":"admin"}}]}`, port, c.path("certs/apiserver.crt"), token)
	for name, text := range map[string][]byte{
		"tokens.csv": []byte(token + ",admin,admin,system:masters\n"), "kubeconfig": []byte(kubeconfig),
		"sa.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
		"sa.pub": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	} {
		if err := os.WriteFile(c.path(name), text, 0o600); err != nil {
			return "", err
		}
	}
	return token, nil
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

// stop stops the programs in reverse order.
func (c *cluster) stop() {
	for i := len(c.programs) - 1; i >= 0; i-- {
		c.programs[i].Stop()
	}
}

func (c *cluster) path(name string) string { return filepath.Join(c.dir, name) }

func (c *cluster) tool(name string) string { return program.Tool(c.tools, name) }

// freePort returns a port without a listener.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

func certificates(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", path)
	}
	return pool, nil
}
