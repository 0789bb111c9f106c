package systemtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"storefront.internal/deploy/local/kafka"
	"storefront.internal/deploy/local/redis"
	"storefront.internal/deploy/stack"
)

// startRedisCluster starts a Redis Cluster of three masters.
func startRedisCluster(t *testing.T) *redis.Cluster {
	t.Helper()
	path, found := redis.Find()
	if !found {
		unavailable(t, fmt.Errorf("no redis-server"))
	}
	var configs []redis.Config
	dir := t.TempDir()
	for i := range 3 {
		configs = append(configs, redis.Config{Path: path, Dir: folder(t, dir, fmt.Sprint("redis-", i)),
			Port: port(t), BusPort: port(t), Log: io.Discard})
	}
	cluster, err := redis.StartCluster(context.Background(), configs)
	check(t, err)
	t.Cleanup(func() { _ = cluster.Close() })
	return cluster
}

// On a Redis Cluster of three masters all works as on one server: claims over many slots, copies of items and
// their invalidations, revoked keys. A master is killed under load and comes back empty: nothing is lost or
// stored twice.
func TestRedisCluster(t *testing.T) {
	t.Parallel()
	cluster := startRedisCluster(t)
	x := newDeployment(t, func(s *stack.Settings) { s.RedisAddr = cluster.Addrs() })
	one, _, _ := strings.Cut(cluster.Addrs(), ",") // as a managed cluster has one endpoint
	b := &balancer{edges: []*stack.Process{x.edge(),
		x.edge("EDGE_REDIS_ADDRS="+one, "EDGE_REDIS_CLUSTER=true")}}
	x.relay()
	s := x.newStorefront()
	d := s.recommend(b.edges[0])

	whole := cartBatch(d, 50)
	if a := s.must(b.edges[0], whole); a.count("accepted") != 50 {
		t.Errorf("fifty signals over all slots: %+v", a)
	}
	if a := s.must(b.edges[1], whole); a.count("duplicate") != 50 {
		t.Errorf("the same at the other edge: %+v", a)
	}
	s.awaitChanges(b.edges)
	keys := s.issue(x, b.edges, 3)
	s.revokeAll(x, b.edges, keys, http.StatusUnauthorized)

	l := startRolling(s, b, d)
	l.more(t, 50)
	for i := range 3 {
		cluster.Kill(i)
		// with a slot unserved the whole cluster refuses, and clients keep what they have
		time.Sleep(time.Second)
		check(t, cluster.Restart(context.Background(), i))
		l.more(t, 50)
	}
	l.stop()
	for _, err := range l.wrong {
		t.Error(err)
	}
	t.Logf("%d batches were taken, %d answers of 503", l.taken.Load(), l.refused.Load())
	ids := append(idsOf(whole), l.ids...)
	x.awaitAllStored(t, s, ids, ids)
}

// awaitChanges changes items and waits until every edge serves the change.
func (s *storefront) awaitChanges(edges []*stack.Process) {
	s.t.Helper()
	results := s.deliverAccepted(things(20, 1)...)
	for revision := range int64(3) {
		if revision > 0 {
			s.deliverAccepted(things(20, revision+1)...)
		}
		for _, edge := range edges {
			for _, r := range results {
				eventually(s.t, 30*time.Second, "the change", func() error {
					got, err := s.read(edge, r.EntityID, "")
					if err == nil && got.Item.Title["es"] != fmt.Sprint("v", revision+1) {
						err = fmt.Errorf("answer %d %s", got.Status, got.body)
					}
					return err
				})
			}
		}
	}
}

// Of three brokers, each record needs two. The leader of the signals' partitions is killed under load, again
// and again: no acknowledged record is lost, and none is stored twice. Three brokers are slow on a small
// machine, so only `make soak` runs this.
func TestThreeBrokers(t *testing.T) {
	if !soaking() {
		t.Skip("played by make soak")
	}
	ctx := context.Background()
	libs, err := kafka.Fetch(ctx, filepath.Join(shared.project.Cache(), "kafka"))
	unavailable(t, err)
	var configs []kafka.Config
	dir := t.TempDir()
	for i := range 3 {
		configs = append(configs, kafka.Config{Libs: libs, Dir: folder(t, dir, fmt.Sprint("kafka-", i)),
			Port: port(t), ControllerPort: port(t), Log: io.Discard})
	}
	brokers, err := kafka.StartCluster(ctx, configs)
	check(t, err)
	t.Cleanup(func() { _ = brokers.Close() })
	x := newDeployment(t, func(s *stack.Settings) { s.KafkaBrokers = brokers.Addrs() })
	b := &balancer{edges: []*stack.Process{x.edge("EDGE_KAFKA_TOPIC_PARTITIONS=6"),
		x.edge("EDGE_KAFKA_TOPIC_PARTITIONS=6")}}
	x.relay()
	s := x.newStorefront()
	l := startRolling(s, b, s.recommend(b.edges[0]))
	l.more(t, 100)
	for range 6 {
		i := leader(t, brokers.Addrs())
		began := time.Now()
		brokers.Kill(i)
		l.more(t, 200) // the two others go on
		t.Logf("broker %d, a leader, was killed: 200 batches later it is %s", i+1,
			time.Since(began).Round(time.Millisecond))
		check(t, brokers.Start(ctx, i))
		awaitReplicated(t, brokers.Addrs())
	}
	l.stop()
	for _, err := range l.wrong {
		t.Error(err)
	}
	t.Logf("%d batches were taken, %d answers of 503, %d broken connections", l.taken.Load(),
		l.refused.Load(), l.broken.Load())
	x.awaitAllStored(t, s, l.ids, l.ids)
}

// partitions reads the metadata of the signals' topic.
func partitions(addrs string) ([]kafkago.Partition, error) {
	client := &kafkago.Client{Addr: kafkago.TCP(strings.Split(addrs, ",")...), Timeout: 5 * time.Second,
		Transport: &kafkago.Transport{}}
	defer client.Transport.(*kafkago.Transport).CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	meta, err := client.Metadata(ctx, &kafkago.MetadataRequest{Topics: []string{"storefront.signals.v1"}})
	if err != nil {
		return nil, err
	}
	if len(meta.Topics) != 1 || meta.Topics[0].Error != nil || len(meta.Topics[0].Partitions) == 0 {
		return nil, fmt.Errorf("%+v", meta.Topics)
	}
	return meta.Topics[0].Partitions, nil
}

// leader is the index of the broker that leads the first partition.
func leader(t *testing.T, addrs string) int {
	t.Helper()
	i := 0
	eventually(t, time.Minute, "a leader", func() error {
		all, err := partitions(addrs)
		if err == nil && all[0].Leader.ID < 1 {
			err = fmt.Errorf("%+v", all[0])
		}
		if err == nil {
			i = all[0].Leader.ID - 1
		}
		return err
	})
	return i
}

// awaitReplicated waits until every broker has every record again.
func awaitReplicated(t *testing.T, addrs string) {
	t.Helper()
	eventually(t, 2*time.Minute, "three copies", func() error {
		all, err := partitions(addrs)
		for _, p := range all {
			if len(p.Isr) != 3 || len(p.Replicas) != 3 {
				err = fmt.Errorf("%+v", p)
			}
		}
		return err
	})
}
