package kafka

import (
	"fmt"
	"io"
	"os"

	"github.com/twmb/franz-go/pkg/kfake"

	"storefront.internal/deploy/local/project"
)

// InProcess is kfake, which keeps its data in a folder.
type InProcess struct {
	cluster *kfake.Cluster
	addr    string
}

// StartInProcess listens on a port of the loopback interface and keeps its data in dir.
func StartInProcess(port int, dir string, log io.Writer) (*InProcess, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port), kfake.DataDir(dir),
		kfake.SyncWrites(),
		kfake.WithLogger(kfake.BasicLogger(log, kfake.LogLevelWarn)))
	if err != nil {
		return nil, fmt.Errorf("start the in-process Kafka: %w", err)
	}
	return &InProcess{cluster: cluster, addr: project.Loopback(port)}, nil
}

// Addr is where the stand-in listens.
func (k *InProcess) Addr() string { return k.addr }

// Close stops the stand-in; its data stays.
func (k *InProcess) Close() error {
	k.cluster.Close()
	return nil
}
