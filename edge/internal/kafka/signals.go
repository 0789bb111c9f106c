package kafka

import (
	"context"
	"errors"
	"hash/fnv"
	"sync"

	"storefront.internal/edge/internal/intake"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/stream"
)

// Buckets is the number of parts into which connections are divided where records are keyed. It is fixed, so
// that a connection stays in its bucket.
const Buckets = 64

// Signals implements intake.Producer. With several producers, each for a group of the topic's partitions, the
// records of a connection go to one group.
type Signals struct{ producers []*stream.Producer }

var _ intake.Producer = (*Signals)(nil)

// NewSignals makes so many producers, at most one for each bucket.
func NewSignals(cfg stream.ProducerConfig, groups int) *Signals {
	groups = max(1, min(groups, Buckets))
	s := &Signals{}
	if groups > 1 {
		cfg.MaxPendingBytes = stream.DefaultPendingBytes / groups // all together hold as much as one
	}
	for i := range groups {
		if groups > 1 {
			cfg.Group = stream.Group{Index: i, Of: groups}
		}
		s.producers = append(s.producers, stream.NewProducer(cfg))
	}
	return s
}

// Produce implements intake.Producer.
func (s *Signals) Produce(ctx context.Context, c ident.ConnectionID, value []byte) (stream.Outcome, error) {
	if len(s.producers) == 1 {
		return s.producers[0].Produce(ctx, value)
	}
	return s.producers[bucket(c)%len(s.producers)].Produce(ctx, value)
}

func bucket(c ident.ConnectionID) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(c))
	return int(h.Sum32() % Buckets)
}

// Close closes the producers as stream.Producer does.
func (s *Signals) Close(ctx context.Context) error {
	var errs []error
	for _, p := range s.producers {
		errs = append(errs, p.Close(ctx))
	}
	return errors.Join(errs...)
}

// Warm connects the producers as stream.Producer does.
func (s *Signals) Warm(ctx context.Context) error {
	errs := make([]error, len(s.producers))
	var all sync.WaitGroup
	for i, p := range s.producers {
		all.Go(func() { errs[i] = p.Warm(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}
