package sink

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"storefront.internal/shared/backoff"
)

// Replay is a parked record that an operator asks to store.
type Replay struct {
	ID      int64
	Message Message
	Index   int // of the signal in its request, or WholeRecord
}

// ReplayStore has the parked records.
type ReplayStore interface {
	// NextReplay returns the record whose replay was requested first, nil when there is none.
	NextReplay(ctx context.Context) (*Replay, error)
}

// ReplayerConfig is what a Replayer needs.
type ReplayerConfig struct {
	Store     ReplayStore
	Writer    *Writer
	Decisions string // the topic of Decisions; every other topic has signals
	Logger    *slog.Logger
}

// Replayer stores parked records again when an operator asks for it. The transaction that stores a record
// says so in its row; a record that is refused again is parked as before. Several may run at once: the ledger
// makes a signal count once.
type Replayer struct{ ReplayerConfig }

// NewReplayer returns a Replayer.
func NewReplayer(c ReplayerConfig) *Replayer { return &Replayer{c} }

// replayEvery is how often a Replayer looks for requests.
const replayEvery = 2 * time.Second

// Run replays records until ctx ends.
func (r *Replayer) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		next, err := r.Store.NextReplay(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			r.Logger.Warn("requested replays of parked records cannot be read, trying again", "error", err)
		case err == nil && next != nil:
			if r.Writer.replay(ctx, next, next.Message.Topic == r.Decisions) == nil {
				r.Logger.Info("a parked record was replayed", "parked_id", next.ID)
			}
			continue
		}
		_ = backoff.Sleep(ctx, replayEvery)
	}
	return nil
}

// replay stores a parked record, or parks it again, however long that takes. The only error is the context's.
func (w *Writer) replay(ctx context.Context, r *Replay, decision bool) error {
	b := &Batch{}
	add := b.AddSignals
	if decision {
		add = b.AddDecision
	}
	if err := add(r.Message); err != nil { // of a newer schema version
		b.parkWhole(r.Message, ReasonUndecodable)
	}
	tx := b.transaction()
	tx.replay = r
	return w.write(ctx, tx)
}

// savePark parks what the batch could not store. A replayed record is completed, or returned to the parked
// ones when it could not be stored.
func (b *batchTx) savePark(ctx context.Context, tx Tx) error {
	parked := b.parked
	if b.replay != nil {
		again := slices.IndexFunc(parked, func(p Parked) bool { return p.Index == b.replay.Index })
		if again < 0 {
			if err := tx.CompleteReplay(ctx, b.replay.ID); err != nil {
				return err
			}
		} else {
			p := &parked[again]
			if err := tx.FailReplay(ctx, b.replay.ID, p.Reason, p.SQLState); err != nil {
				return err
			}
			parked = slices.Delete(slices.Clone(parked), again, again+1)
		}
	}
	if len(parked) == 0 {
		return nil
	}
	return tx.Park(ctx, parked)
}
