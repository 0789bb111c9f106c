package sink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/engine-relay/internal/cart"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// memory is a store in memory: what it commits stays, what fails leaves nothing.
type memory struct {
	ledger   map[[16]byte]struct{}
	signals  []ident.SignalID
	parked   []Parked
	enqueued [][]byte
	erased   Erasures
	forget   []VisitorErasure
	replayed []int64
	failed   []string
	commits  int
	stored   map[int64]struct{} // offsets of the partition t/0
	// refuse is asked with the signals of a transaction, before anything is written.
	refuse func(signals []ident.SignalID) error
	begin  func() error
}

type memoryTx struct {
	*memory
	ledger map[[16]byte]struct{}
}

func (m *memory) InTx(_ context.Context, fn func(Tx) error) error {
	if m.begin != nil {
		if err := m.begin(); err != nil {
			return err
		}
	}
	before := *m
	tx := &memoryTx{memory: m, ledger: maps.Clone(m.ledger)}
	if tx.ledger == nil {
		tx.ledger = map[[16]byte]struct{}{}
	}
	if err := fn(tx); err != nil {
		*m = before
		return err
	}
	m.ledger = tx.ledger
	m.commits++
	return nil
}

func (t *memoryTx) Erasures(_ context.Context, since time.Time) (Erasures, error) {
	late := Erasures{}
	for digest, before := range t.erased {
		if before.After(since) {
			late[digest] = before
		}
	}
	return late, nil
}

func (t *memoryTx) RequestErasures(_ context.Context, visitors []VisitorErasure) error {
	t.forget = append(slices.Clip(t.forget), visitors...)
	return nil
}

func (t *memoryTx) SaveDecisions(_ context.Context, all []*signal.Decision) (int, error) {
	return len(all), nil
}

func (t *memoryTx) InsertLedger(_ context.Context, keys []LedgerKey) (map[[16]byte]struct{}, error) {
	entered := map[[16]byte]struct{}{}
	for _, k := range keys {
		if _, known := t.ledger[k.Digest]; !known {
			entered[k.Digest], t.ledger[k.Digest] = struct{}{}, struct{}{}
		}
	}
	return entered, nil
}

func (t *memoryTx) Served(context.Context, []DecisionKey) (map[DecisionKey]Served, error) {
	return nil, nil
}

func (t *memoryTx) SaveSignals(_ context.Context, signals []Signal) error {
	var all []ident.SignalID
	for _, s := range signals {
		all = append(all, s.ID)
	}
	if t.refuse != nil {
		if err := t.refuse(all); err != nil {
			return err
		}
	}
	t.signals = append(slices.Clip(t.signals), all...)
	return nil
}

func (t *memoryTx) SaveAudits(context.Context, []Audit) error { return nil }

func (t *memoryTx) Lines(_ context.Context, keys []LineKey) ([]*cart.Line, error) {
	lines := make([]*cart.Line, len(keys))
	for i := range lines {
		lines[i] = &cart.Line{}
	}
	return lines, nil
}

func (t *memoryTx) SaveLines(context.Context, []LineKey, []*cart.Line) error { return nil }

func (t *memoryTx) Enqueue(_ context.Context, entries []deliveries.Entry) error {
	for _, e := range entries {
		t.enqueued = append(slices.Clip(t.enqueued), e.Body)
	}
	return nil
}

func (t *memoryTx) Park(_ context.Context, parked []Parked) error {
	t.parked = append(slices.Clip(t.parked), parked...)
	return nil
}

func (t *memoryTx) CompleteReplay(_ context.Context, id int64) error {
	t.replayed = append(slices.Clip(t.replayed), id)
	return nil
}

func (t *memoryTx) FailReplay(_ context.Context, id int64, reason, state string) error {
	t.failed = append(slices.Clip(t.failed), fmt.Sprintf("%d %s %s", id, reason, state))
	return nil
}

func (t *memoryTx) MarkStored(_ context.Context, _ string, spans []Span) ([]Position, error) {
	t.stored = maps.Clone(t.stored)
	if t.stored == nil {
		t.stored = map[int64]struct{}{}
	}
	for _, s := range spans {
		for o := s.From; o < s.To; o++ {
			t.stored[o] = struct{}{}
		}
	}
	next := int64(0)
	for ; ; next++ {
		if _, there := t.stored[next]; !there {
			break
		}
	}
	return []Position{{Partition{"t", 0}, next}}, nil
}

func over(s Store) *Writer {
	return New(
		Config{Store: s, Logger: slog.New(slog.DiscardHandler), Metrics: NewMetrics(prometheus.NewRegistry()),
			Pause: func(ctx context.Context, _ int) error { return ctx.Err() }},
	)
}

func refused(state string) error {
	return errors.Join(errors.New("wrapped"), &pgconn.PgError{Code: state})
}

func stored(t *testing.T, m *memory, messages ...Message) {
	t.Helper()
	b := &Batch{}
	for _, message := range messages {
		if err := b.AddSignals(message); err != nil {
			t.Fatal(err)
		}
	}
	if err := over(m).Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}
