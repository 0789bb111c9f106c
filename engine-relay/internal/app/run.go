package app

import (
	"context"
	"errors"
	"fmt"

	"storefront.internal/shared/pg/migrations"
	"storefront.internal/shared/service"
	"storefront.internal/shared/stream"
)

// Run stores and delivers until a signal or the end of the context. It starts while PostgreSQL, Kafka or the engine are
// away, and then is not ready. It ends in the order in which data flows: no more is read, the transaction under way
// ends, requests to the engine end and leases go back, then the pool.
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
	g.Loop("upkeep", a.works.upkeep.Run)
	g.Loop("lag", a.works.lag.Run)
	g.Loop("erasures", a.works.eraser.Run)
	g.Loop("delivery", a.works.worker.Run)
	g.Loop("sink", a.consume)
	g.Add("drain", nil, func(context.Context) error {
		a.admin.SetDraining()
		return nil
	})
	return g.Run(ctx)
}

// consume reads the topics once there are partitions to store into. A lost offset halts it, and nothing else: what is
// queued goes on to the engine, while an operator is called by readiness and metric.
func (a *App) consume(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-a.works.upkeep.Ready():
	}
	signals, decisions := a.cfg.topics()
	topics := make([]stream.Topic, 0, 2)
	for _, name := range []string{signals, decisions} {
		topics = append(topics, stream.Topic{Name: name, Partitions: a.cfg.TopicPartitions, ReplicationFactor: a.cfg.ReplicationFactor})
	}
	if err := stream.EnsureTopics(ctx, a.cfg.KafkaBrokers, a.security, topics); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	err := a.works.stream.Run(ctx, func(ctx context.Context, part *stream.Assignment) error {
		return a.works.consume.Consume(ctx, part)
	})
	if !errors.Is(err, stream.ErrOffsetLost) {
		return err
	}
	a.halted.Store(&err)
	a.logger.Error("the sink is halted: Kafka does not have the next records; restart with "+Prefix+"_KAFKA_ACCEPT_LOSS=true to go on without them",
		"error", err)
	<-ctx.Done()
	return nil
}

// readiness makes the relay ready when what it reads can be stored.
func (a *App) readiness() {
	a.admin.Add("schema", func(ctx context.Context) error {
		current, want, err := migrations.VersionOf(ctx, a.pool)
		if err == nil && current < want {
			err = fmt.Errorf("schema version is %d, want %d", current, want)
		}
		return err
	})
	a.admin.Add("offsets", func(context.Context) error {
		if err := a.halted.Load(); err != nil {
			return *err
		}
		return nil
	})
	a.admin.Add("consumer", a.works.consume.Ready)
	a.admin.Add("sink", a.works.recorder.Ready)
}

// AdminAddr is the bound address of the operations port, empty before it listens.
func (a *App) AdminAddr() string { return a.admin.Addr() }
