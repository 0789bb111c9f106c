package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/pg/migrations"
	"storefront.internal/shared/service"
	"storefront.internal/shared/stream"
)

// Run stores and delivers until a signal or the end of the context. It also starts while PostgreSQL, Kafka or
// the engine are down, and is not ready then. It stops in the order of the data flow: reading ends, the
// transaction under way ends, requests to the engine end and their leases are released, then the pool closes.
func (a *App) Run(ctx context.Context) error {
	g := service.New(service.Config{Logger: a.logger})
	g.Add("stores", nil, func(context.Context) error {
		a.pool.Close()
		if a.engine != nil {
			a.engine.Close()
		}
		return nil
	})
	g.Add("operations port", a.admin.Start, a.admin.Stop)
	g.Add("tracing", nil, a.tracing.Stop)
	g.AddLoop("upkeep", a.parts.upkeep.Run)
	g.AddLoop("lag", a.parts.lag.Run)
	g.AddLoop("erasures", a.parts.eraser.Run)
	g.AddLoop("delivery", a.parts.worker.Run)
	g.AddLoop("sink", a.consume)
	g.AddLoop("replays", a.replay)
	g.Add("drain", nil, func(context.Context) error {
		a.admin.SetDraining()
		return nil
	})
	return g.Run(ctx)
}

// replay stores parked records once the partitions of the tables exist.
func (a *App) replay(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-a.parts.upkeep.Ready():
	}
	return a.parts.replayer.Run(ctx)
}

// consume reads the topics once the partitions of the tables exist. A lost offset stops only this: delivery
// goes on, and readiness and a metric call an operator.
func (a *App) consume(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-a.parts.upkeep.Ready():
	}
	topics := make([]stream.Topic, 0, 2)
	for _, name := range []string{a.cfg.SignalsTopic, a.cfg.DecisionsTopic} {
		topics = append(topics, stream.Topic{
			Name: name, Partitions: a.cfg.TopicPartitions, ReplicationFactor: a.cfg.ReplicationFactor,
		})
	}
	if err := stream.EnsureTopics(ctx, a.cfg.KafkaBrokers, a.security, topics); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	err := a.read(ctx)
	if !errors.Is(err, stream.ErrOffsetLost) {
		return err
	}
	a.halted.Store(&err)
	a.sinkHalted.Set(1)
	a.logger.Error("the sink is halted: Kafka does not have the next records; "+
		"to continue without them, restart with "+Prefix+"_KAFKA_ACCEPT_LOSS=true", "error", err)
	<-ctx.Done()
	return nil
}

// rejoinDelay keeps a relay that finds PostgreSQL behind from joining the group again and again.
const rejoinDelay = time.Second

// read is a member of the group until ctx ends. When PostgreSQL turns out to be behind, it joins again, so
// that the partitions begin where PostgreSQL is.
func (a *App) read(ctx context.Context) error {
	for {
		err := a.parts.stream.Run(ctx, func(ctx context.Context, part *stream.Assignment) error {
			return a.parts.consumer.Consume(ctx, part)
		})
		if !errors.Is(err, sink.ErrBehind) {
			return err
		}
		a.logger.Warn("the consumer group is joined again", "error", err)
		if backoff.Sleep(ctx, rejoinDelay) != nil {
			return nil
		}
	}
}

// readiness makes the relay ready when it can store what it reads.
func (a *App) readiness() {
	a.admin.AddCheck("schema", func(ctx context.Context) error {
		current, want, err := migrations.Version(ctx, a.pool)
		if err == nil && current < want {
			err = fmt.Errorf("schema version is %d, want %d", current, want)
		}
		return err
	})
	a.admin.AddCheck("offsets", func(context.Context) error {
		if err := a.halted.Load(); err != nil {
			return *err
		}
		return nil
	})
	a.admin.AddCheck("partitions", a.parts.upkeep.Check) // before it passes, there is no consumer
	a.admin.AddCheck("consumer", a.parts.consumer.Ready)
	a.admin.AddCheck("sink", a.parts.sink.Ready)
}

// AdminAddr is the address of the operations port, empty before it listens.
func (a *App) AdminAddr() string { return a.admin.Addr() }
