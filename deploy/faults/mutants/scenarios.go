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
	"storefront.internal/deploy/faults/stage"
	"storefront.internal/deploy/faults/topology"
	"storefront.internal/shared/crashpoint"
)

// scenario aims a fault. It leaves the deployment healed; an error says that it could not be played, which is no catch.
type scenario func(ctx context.Context, s *stage.Stage) error

// scenarios by name.
func scenarios() map[string]scenario {
	return map[string]scenario{
		"broker gone":                 brokerGone,
		"lost acks":                   lostAcks,
		"deaf edge":                   deafEdge,
		"stalled before the hand-off": func(ctx context.Context, s *stage.Stage) error { return stalledOwner(ctx, s, crashpoint.IntakeClaimed) },
		"stalled after the hand-off": func(ctx context.Context, s *stage.Stage) error {
			return stalledOwner(ctx, s, crashpoint.IntakeProduced)
		},
		"crowd":              crowd,
		"strangers":          strangers,
		"revoked key":        revokedKey,
		"stale fill":         staleFill,
		"Redis behind":       redisBehind,
		"sink killed":        sinkKilled,
		"two sinks":          twoSinks,
		"refusing database":  refusingDatabase,
		"stalled courier":    stalledCourier,
		"refused credential": refusedCredential,
		"deaf engine":        deafEngine,
		"cut requests":       cutRequests,
		"same news":          sameNews,
		"connector":          connector,
	}
}

// brokerGone: an edge has lost the broker. What it says meanwhile must be true, and so must what a resend is told.
func brokerGone(ctx context.Context, s *stage.Stage) error {
	d, err := s.Shop.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	var batches [][]history.Sent
	way := s.Link("edge-1", "kafka")
	err = s.Fault("N4", "edge-1>kafka cut", func() error {
		way.Cut()
		for range 3 {
			batches = append(batches, s.Shop.Adds(d, 5))
		}
		return errors.Join(stage.Together(len(batches), func(i int) error {
			s.Shop.Send(ctx, s.Edge(1), batches[i])
			return nil
		}), topology.Sleep(ctx, 5*time.Second), way.Heal())
	})
	if err != nil {
		return err
	}
	for _, b := range batches[:2] { // one client has left its page
		if err := s.Shop.Deliver(ctx, s.Edge(1), b); err != nil {
			return err
		}
	}
	return nil
}

// lostAcks: the broker takes what an edge writes, and the edge does not hear of it.
func lostAcks(ctx context.Context, s *stage.Stage) error {
	d, err := s.Shop.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	var batches [][]history.Sent
	for range 3 {
		batches = append(batches, s.Shop.Adds(d, 5))
	}
	way := s.Link("edge-1", "kafka")
	err = s.Fault("N6", "edge-1>kafka deaf", func() error {
		// The connection is made and warm: only answers are lost.
		if err := s.Shop.Deliver(ctx, s.Edge(1), s.Shop.Adds(d, 1)); err != nil {
			return err
		}
		if err := way.Deafen(0); err != nil {
			return err
		}
		for _, b := range batches { // a connection each: the first loss ends the one that was warm
			s.Shop.Send(ctx, s.Edge(1), b)
		}
		return errors.Join(topology.Sleep(ctx, 8*time.Second), way.Heal())
	})
	if err != nil {
		return err
	}
	for _, b := range batches {
		if err := s.Shop.Deliver(ctx, s.Edge(2), b); err != nil {
			return err
		}
	}
	return nil
}

// deafEdge: every attempt to write reaches the broker on a connection of its own, and no answer comes back. What the client hears
// is that nothing is proved; nobody may go on writing behind its back.
func deafEdge(ctx context.Context, s *stage.Stage) error {
	d, err := s.Shop.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	greeting, err := greeting(ctx, s.Brokers())
	if err != nil {
		return err
	}
	if err := s.Shop.Deliver(ctx, s.Edge(1), s.Shop.Adds(d, 1)); err != nil { // the edge knows the partitions from here on
		return err
	}
	batch := s.Shop.Adds(d, 5)
	way := s.Link("edge-1", "kafka")
	err = s.Fault("N6", "edge-1>kafka deaf behind the greeting", func() error {
		way.Cut() // a connection that is open has its greeting behind it
		err := errors.Join(way.Heal(), way.Deafen(greeting+8))
		if err == nil {
			s.Shop.Send(ctx, s.Edge(1), batch)
			err = topology.Sleep(ctx, time.Second)
		}
		return errors.Join(err, way.Heal())
	})
	if err != nil {
		return err
	}
	return errors.Join(s.Shop.Deliver(ctx, s.Edge(2), batch), topology.Sleep(ctx, 8*time.Second)) // whoever writes on has written by then
}

// greeting is the length of what a broker answers to the first request of a connection (ApiVersions, version 0).
func greeting(ctx context.Context, broker string) (int64, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", broker)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	request := []byte{0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff} // its length, key 18, version 0, number 1, no client's name
	if _, err := conn.Write(request); err != nil {
		return 0, err
	}
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint32(length[:])) + 4, nil
}

// stalledOwner: an edge stands still in the middle of a batch for longer than the lease; another one takes over.
func stalledOwner(ctx context.Context, s *stage.Stage, point string) error {
	d, err := s.Shop.Recommend(ctx, s.Edge(2))
	if err != nil {
		return err
	}
	if err := s.Arm(ctx, s.Edges[0], point, "stop"); err != nil {
		return err
	}
	batch := s.Shop.Adds(d, 5)
	first := make(chan struct{})
	go func() {
		defer close(first)
		s.Shop.Send(ctx, s.Edge(1), batch)
	}()
	err = s.Fault("N2", "edge-1 stopped at "+point, func() error {
		err := stage.Until(ctx, "stop at "+point, func() (bool, error) { return s.Edges[0].Stopped(), nil })
		if err == nil {
			err = s.Shop.Deliver(ctx, s.Edge(2), batch)
		}
		return errors.Join(err, s.Edges[0].Continue())
	})
	<-first
	if err != nil {
		return err
	}
	if err := topology.Sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	return s.Shop.Deliver(ctx, s.Edge(2), batch)
}

// crowd: many clients at once over a way that is slow enough for flushes to gather.
func crowd(ctx context.Context, s *stage.Stage) error {
	d, err := s.Shop.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	way := s.Link("edge-1", "kafka")
	return s.Fault("N3", "edge-1>kafka slow", func() error {
		if err := way.Slow(30*time.Millisecond, 5*time.Millisecond); err != nil {
			return err
		}
		err := stage.Together(24, func(i int) error {
			for range 6 {
				if err := s.Shop.Deliver(ctx, s.Edge(1), s.Shop.Adds(d, 1+i%7)); err != nil {
					return err
				}
			}
			return nil
		})
		return errors.Join(err, way.Heal())
	})
}

// strangers: a Decision is used at another edge at once, and in another shop, where nobody knows it.
func strangers(ctx context.Context, s *stage.Stage) error {
	other, err := stage.New(ctx, s.Topology, s.Merchant, nil)
	if err != nil {
		return err
	}
	for range 10 {
		own, err := s.Shop.Recommend(ctx, s.Edge(1))
		if err != nil {
			return err
		}
		s.Shop.Send(ctx, s.Edge(2), s.Shop.Adds(own, 2))
		foreign, err := other.Shop.Recommend(ctx, s.Edge(1))
		if err != nil {
			return err
		}
		batch := s.Shop.Adds(foreign, 2)
		for i := range batch {
			batch[i].Foreign = true
		}
		s.Shop.Send(ctx, s.Edge(2), batch)
	}
	return nil
}

// revokedKey: a key that an edge knows well is revoked.
func revokedKey(ctx context.Context, s *stage.Stage) error {
	key, err := s.Shop.Issue(ctx)
	if err != nil {
		return err
	}
	d, err := s.Shop.Recommend(ctx, s.Edge(1))
	if err != nil {
		return err
	}
	for range 3 {
		if end := s.Shop.SendWith(ctx, key, s.Edge(1), s.Shop.Adds(d, 1)); end.Kind != history.OK {
			return fmt.Errorf("a new key was not taken: %d %s", end.Status, end.Error)
		}
	}
	if err := s.Shop.Revoke(ctx, key); err != nil {
		return err
	}
	if err := topology.Sleep(ctx, 17*time.Second); err != nil {
		return err
	}
	s.Shop.SendWith(ctx, key, s.Edge(1), s.Shop.Adds(d, 1))
	return nil
}
