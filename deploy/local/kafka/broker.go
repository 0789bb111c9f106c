// Package kafka runs a Kafka for the local stack and the tests: a real broker (one KRaft node whose class
// path Maven copied), a cluster of them, or kfake in this process. It creates no topics.
package kafka

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/segmentio/kafka-go"

	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/local/project"
)

// clusterID is any fixed 16 bytes in base64url: each cluster here is the only one on its ports.
const clusterID = "c3RvcmVmcm9udC1sb2NhbA"

// Config of a broker. Libs comes from Fetch.
type Config struct {
	Libs           string
	Dir            string
	Port           int
	ControllerPort int
	// Listeners are further listeners with addresses of their own for clients, for example those of a proxy.
	Listeners []Listener
	// Scram are users and passwords for listeners with SASL.
	Scram map[string]string
	// Properties are further lines of the configuration.
	Properties []string
	// Node and Voters make the broker one of a cluster, in which each is a controller too; zero values mean
	// that it is alone.
	Node   int
	Voters []string // id@host:port of every node's controller
	Log    io.Writer
}

// Listener is a further listener.
type Listener struct {
	Name       string // in capitals
	Port       int
	Advertised string // host:port
	Protocol   string // "" is PLAINTEXT
}

// Broker is a running broker.
type Broker struct {
	*process.Process
	addr string
}

// Start formats the storage if it is new, and returns when the broker answers.
func Start(ctx context.Context, cfg Config) (*Broker, error) {
	properties := filepath.Join(cfg.Dir, "server.properties")
	if err := os.WriteFile(properties, []byte(cfg.properties()), 0o644); err != nil {
		return nil, err
	}
	if err := format(ctx, cfg, properties); err != nil {
		return nil, err
	}
	tail := &process.Tail{}
	var log io.Writer = tail
	if cfg.Log != nil {
		log = io.MultiWriter(tail, cfg.Log)
	}
	p, err := process.Start(process.Spec{
		Name: "kafka", Path: "java", Dir: cfg.Dir, Log: log, Death: syscall.SIGTERM,
		Args: java(cfg.Libs, "-Xms256m", "-Xmx512m", "kafka.Kafka", properties),
	})
	if err != nil {
		return nil, err
	}
	b := &Broker{Process: p, addr: project.Loopback(cfg.Port)}
	ctx, cancel := context.WithTimeout(ctx, cfg.startTimeout())
	defer cancel()
	if err := p.WaitReady(ctx, b.ping); err != nil {
		p.Kill()
		return nil, fmt.Errorf("%w\n%s", err, tail)
	}
	return b, nil
}

// startTimeout is how long a start may take. A broker of its own is up within seconds; on a busy machine one
// took more than 90. The brokers of a cluster wait for each other and elect a leader.
func (c Config) startTimeout() time.Duration {
	return time.Duration(1+len(c.Voters)) * 4 * time.Minute
}

// Addr is where the broker listens.
func (b *Broker) Addr() string { return b.addr }

// Close stops the broker.
func (b *Broker) Close() error { return b.Stop(syscall.SIGTERM, 30*time.Second) }

func (b *Broker) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	client := &kafka.Client{Addr: kafka.TCP(b.addr), Timeout: 2 * time.Second, Transport: &kafka.Transport{}}
	defer client.Transport.(*kafka.Transport).CloseIdleConnections()
	answer, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	if err == nil && len(answer.Brokers) == 0 {
		err = fmt.Errorf("the broker at %s has not registered yet", b.addr)
	}
	return err
}

func format(ctx context.Context, cfg Config, properties string) error {
	data := filepath.Join(cfg.Dir, "data")
	if _, err := os.Stat(filepath.Join(data, "meta.properties")); err == nil {
		return nil
	}
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	args := []string{"-Xmx128m", "-XX:TieredStopAtLevel=1", "kafka.tools.StorageTool", "format", "-t",
		clusterID, "-c", properties}
	for user, password := range cfg.Scram {
		for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
			args = append(args, "--add-scram",
				fmt.Sprintf("%s=[name=%s,password=%s]", mechanism, user, password))
		}
	}
	cmd := exec.CommandContext(ctx, "java", java(cfg.Libs, args...)...)
	cmd.Dir = cfg.Dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("format the Kafka storage: %w\n%s", err, &out)
	}
	return nil
}

func java(libs string, args ...string) []string {
	return append([]string{"-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp",
		filepath.Join(libs, "*")}, args...)
}

func (c Config) properties() string {
	listeners, advertised, protocols := "", "", ""
	for _, d := range c.Listeners {
		listeners += fmt.Sprintf(",%s://%s", d.Name, project.Loopback(d.Port))
		advertised += fmt.Sprintf(",%s://%s", d.Name, d.Advertised)
		protocols += fmt.Sprintf(",%s:%s", d.Name, cmp.Or(d.Protocol, "PLAINTEXT"))
	}
	node, voters, copies, inSync := 1, fmt.Sprintf("1@127.0.0.1:%d", c.ControllerPort), 1, 1
	if len(c.Voters) > 0 {
		node, voters, copies, inSync = c.Node, strings.Join(c.Voters, ","), len(c.Voters), len(c.Voters)/2+1
	}
	lines := []string{
		"process.roles=broker,controller",
		fmt.Sprint("node.id=", node),
		"controller.quorum.voters=" + voters,
		fmt.Sprintf("listeners=PLAINTEXT://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d%s", c.Port,
			c.ControllerPort, listeners),
		fmt.Sprintf("advertised.listeners=PLAINTEXT://127.0.0.1:%d%s", c.Port, advertised),
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT" + protocols,
		"controller.listener.names=CONTROLLER",
		"log.dirs=" + filepath.Join(c.Dir, "data"),
		"auto.create.topics.enable=false",
		fmt.Sprint("default.replication.factor=", copies),
		fmt.Sprint("min.insync.replicas=", inSync),
		fmt.Sprint("offsets.topic.replication.factor=", copies),
		"offsets.topic.num.partitions=4",
		fmt.Sprint("transaction.state.log.replication.factor=", copies),
		fmt.Sprint("transaction.state.log.min.isr=", inSync),
		fmt.Sprint("share.coordinator.state.topic.replication.factor=", copies),
		fmt.Sprint("share.coordinator.state.topic.min.isr=", inSync),
		"group.initial.rebalance.delay.ms=0",
		"",
	}
	if len(c.Voters) > 0 { // on a small machine the elections of the default second never end
		lines = append(lines, "controller.quorum.election.timeout.ms=4000",
			"controller.quorum.fetch.timeout.ms=8000", "")
	}
	return strings.Join(append(lines, c.Properties...), "\n") + "\n"
}
