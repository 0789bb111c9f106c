package deliveries

// SelectView is the statement whose plan is tested.
const SelectView = selectView

// PickByIDs is the part of a replay by ids whose plan is tested.
const PickByIDs = pickByIDs

// ReplayChunk is how many rows a transaction of a replay moves.
const ReplayChunk = replayChunk
