package deliveries

import "context"

// SelectView is the statement whose plan is tested.
const SelectView = selectView

// PickByIDs is the part of a replay by ids whose plan is tested.
const PickByIDs = pickByIDs

// ReplayChunk is how many rows a transaction of a replay moves.
const ReplayChunk = replayChunk

// Choosing is choosing.
func (s *Store) Choosing(ctx context.Context) (chosen func(), err error) { return s.choosing(ctx) }
