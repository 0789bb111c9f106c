package deliveries

import "context"

// SelectSums and SelectOldest are the statements of the queue view, whose plans are tested.
const (
	SelectSums   = selectSums
	SelectOldest = selectOldest
)

// PickByIDs is the part of a replay by ids whose plan is tested.
const PickByIDs = pickByIDs

// ReplayChunk is how many rows a transaction of a replay moves.
const ReplayChunk = replayChunk

// Choosing is choosing.
func (s *Store) Choosing(ctx context.Context) (chosen func(), err error) { return s.choosing(ctx) }
