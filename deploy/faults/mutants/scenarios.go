package mutants

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/faults/liveness"
	"storefront.internal/deploy/faults/recording"
	"storefront.internal/deploy/faults/scenario"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/failpoint"
)

// run makes a bug visible. It heals its faults. An error means that it could not be run.
type run func(ctx context.Context, s *scenario.Env) error

// scenarios by name.
func scenarios() map[string]run {
	return map[string]run{
		"broker unreachable":    brokerUnreachable,
		"acks lost":             acksLost,
		"broker responses lost": brokerResponsesLost,
		"edge paused before produce": func(ctx context.Context,
			s *scenario.Env) error {
			return edgePaused(ctx, s, failpoint.IntakeClaimed)
		},
		"edge paused after produce": func(ctx context.Context, s *scenario.Env) error {
			return edgePaused(ctx, s, failpoint.IntakeProduced)
		},
		"many clients":          manyClients,
		"foreign decisions":     foreignDecisions,
		"revoked key":           revokedKey,
		"late cache fill":       lateCacheFill,
		"outdated Redis":        outdatedRedis,
		"relay killed":          relayKilled,
		"two sinks":             twoSinks,
		"database rejects rows": databaseRejectsRows,
		"relay paused":          relayPaused,
		"credential rejected":   credentialRejected,
		"engine responses lost": engineResponsesLost,
		"requests truncated":    requestsTruncated,
		"identical webhooks":    identicalWebhooks,
		"custom connector":      customConnector,

		"PostgreSQL hangs":          outage(liveness.Postgres, liveness.Hung),
		"Redis hangs":               outage(liveness.Redis, liveness.Hung),
		"engine hangs":              outage(liveness.Engine, liveness.Hung),
		"engine fails":              outage(liveness.Engine, liveness.Failing),
		oneBroker:                   outage(liveness.Broker, liveness.BlackHoled),
		"provider hangs":            outage(liveness.Provider, liveness.Hung),
		"relays hang":               outage(liveness.Relay, liveness.Hung),
		"greedy clients":            greedyClients,
		"engine refuses everything": engineRefuses,
		"envelopes refused":         envelopesRefused,
		"corrected product":         correctedProduct,
		"signal parked":             signalParked,
		"visitor erased":            visitorErased,
		"buyers redacted":           buyersRedacted,
	}
}

// oneBroker is the scenario that needs a cluster.
const oneBroker = "one broker black-holed"

// brokers returns the number of brokers that a scenario needs.
func brokers(scenario string) int {
	if scenario == oneBroker {
		return 3
	}
	return 1
}

// brokerUnreachable sends batches to an edge that cannot reach the broker, and sends most of them again
// later.
func brokerUnreachable(ctx context.Context, s *scenario.Env) error {
	d, err := s.Connection.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	var batches [][]recording.Signal
	l := s.Link("edge-1", "kafka")
	err = s.Fault("N4", "edge-1>kafka cut", func() error {
		l.Cut()
		for range 3 {
			batches = append(batches, s.Connection.AddToCart(d, 5))
		}
		return errors.Join(scenario.Concurrently(len(batches), func(i int) error {
			s.Connection.Send(ctx, s.Edge(1), batches[i])
			return nil
		}), backoff.Sleep(ctx, 5*time.Second), l.Heal())
	})
	if err != nil {
		return err
	}
	for _, b := range batches[:2] { // one client never comes back
		if err := s.Connection.SendUntilAccepted(ctx, s.Edge(1), b); err != nil {
			return err
		}
	}
	return nil
}

// acksLost lets the broker write the records of an edge, which gets no acknowledgement.
func acksLost(ctx context.Context, s *scenario.Env) error {
	d, err := s.Connection.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	var batches [][]recording.Signal
	for range 3 {
		batches = append(batches, s.Connection.AddToCart(d, 5))
	}
	l := s.Link("edge-1", "kafka")
	err = s.Fault("N6", "edge-1>kafka: responses are lost", func() error {
		// The connection is open: only responses are lost.
		if err := s.Connection.SendUntilAccepted(ctx, s.Edge(1), s.Connection.AddToCart(d, 1)); err != nil {
			return err
		}
		if err := l.Deafen(0); err != nil {
			return err
		}
		for _, b := range batches { // each on a connection of its own: the first loss closes the open one
			s.Connection.Send(ctx, s.Edge(1), b)
		}
		return errors.Join(backoff.Sleep(ctx, 8*time.Second), l.Heal())
	})
	if err != nil {
		return err
	}
	for _, b := range batches {
		if err := s.Connection.SendUntilAccepted(ctx, s.Edge(2), b); err != nil {
			return err
		}
	}
	return nil
}

// brokerResponsesLost lets each attempt to write reach the broker on a new connection, and loses all
// responses. The edge must not write again after its response to the client.
func brokerResponsesLost(ctx context.Context, s *scenario.Env) error {
	d, err := s.Connection.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	first, err := firstResponseLength(ctx, s.Settings.KafkaBrokers)
	if err != nil {
		return err
	}
	// now the edge knows the partitions
	if err := s.Connection.SendUntilAccepted(ctx, s.Edge(1), s.Connection.AddToCart(d, 1)); err != nil {
		return err
	}
	batch := s.Connection.AddToCart(d, 5)
	l := s.Link("edge-1", "kafka")
	err = s.Fault("N6", "edge-1>kafka: responses after the first are lost", func() error {
		l.Cut() // open connections have had their first response
		err := errors.Join(l.Heal(), l.Deafen(first+8))
		if err == nil {
			s.Connection.Send(ctx, s.Edge(1), batch)
			err = backoff.Sleep(ctx, time.Second)
		}
		return errors.Join(err, l.Heal())
	})
	if err != nil {
		return err
	}
	// late writes have happened by then
	return errors.Join(s.Connection.SendUntilAccepted(ctx, s.Edge(2), batch),
		backoff.Sleep(ctx, 8*time.Second))
}

// firstResponseLength returns the length of the broker's response to the first request of a connection
// (ApiVersions, version 0).
func firstResponseLength(ctx context.Context, broker string) (int64, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", broker)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	// length, key 18, version 0, correlation id 1, no client id
	request := []byte{0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff}
	if _, err := conn.Write(request); err != nil {
		return 0, err
	}
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint32(length[:])) + 4, nil
}

// edgePaused pauses an edge in the middle of a batch for longer than its claims live; the other edge takes
// over.
func edgePaused(ctx context.Context, s *scenario.Env, point string) error {
	d, err := s.Connection.Recommend(ctx, s.Edge(2))
	if err != nil {
		return err
	}
	if err := s.ArmFailpoint(ctx, s.Edges[0], point, "stop"); err != nil {
		return err
	}
	batch := s.Connection.AddToCart(d, 5)
	first := make(chan struct{})
	go func() {
		defer close(first)
		s.Connection.Send(ctx, s.Edge(1), batch)
	}()
	err = s.Fault("N2", "edge-1 stopped at "+point, func() error {
		err := scenario.Until(ctx, "stop at "+point, func() (bool, error) { return s.Edges[0].Paused(), nil })
		if err == nil {
			err = s.Connection.SendUntilAccepted(ctx, s.Edge(2), batch)
		}
		return errors.Join(err, s.Edges[0].Resume())
	})
	<-first
	if err != nil {
		return err
	}
	if err := backoff.Sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	return s.Connection.SendUntilAccepted(ctx, s.Edge(2), batch)
}

// manyClients sends from many clients over a slow link, so that flushes contain many records.
func manyClients(ctx context.Context, s *scenario.Env) error {
	d, err := s.Connection.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	l := s.Link("edge-1", "kafka")
	return s.Fault("N3", "edge-1>kafka slow", func() error {
		if err := l.Slow(30*time.Millisecond, 5*time.Millisecond); err != nil {
			return err
		}
		err := scenario.Concurrently(24, func(i int) error {
			for range 6 {
				if err := s.Connection.SendUntilAccepted(ctx, s.Edge(1),
					s.Connection.AddToCart(d, 1+i%7)); err != nil {
					return err
				}
			}
			return nil
		})
		return errors.Join(err, l.Heal())
	})
}

// foreignDecisions uses a Decision at the other edge at once, and Decisions of another connection.
func foreignDecisions(ctx context.Context, s *scenario.Env) error {
	other, err := scenario.New(ctx, s.Topology, s.Merchant, nil)
	if err != nil {
		return err
	}
	for range 10 {
		own, err := s.Connection.Recommend(ctx, s.Edge(1))
		if err != nil {
			return err
		}
		s.Connection.Send(ctx, s.Edge(2), s.Connection.AddToCart(own, 2))
		foreign, err := other.Connection.Recommend(ctx, s.Edge(1))
		if err != nil {
			return err
		}
		batch := s.Connection.AddToCart(foreign, 2)
		for i := range batch {
			batch[i].ForeignDecision = true
		}
		s.Connection.Send(ctx, s.Edge(2), batch)
	}
	return nil
}

// revokedKey uses a key after it was revoked.
func revokedKey(ctx context.Context, s *scenario.Env) error {
	key, err := s.Connection.IssueKey(ctx)
	if err != nil {
		return err
	}
	d, err := s.Connection.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	for range 3 {
		if end := s.Connection.SendWithKey(ctx, key, s.Edge(1),
			s.Connection.AddToCart(d, 1)); end.Kind != history.OK {
			return fmt.Errorf("a new key was rejected: %d %s", end.Status, end.Error)
		}
	}
	if err := s.Connection.RevokeKey(ctx, key); err != nil {
		return err
	}
	if err := backoff.Sleep(ctx, 17*time.Second); err != nil {
		return err
	}
	s.Connection.SendWithKey(ctx, key, s.Edge(1), s.Connection.AddToCart(d, 1))
	return nil
}
