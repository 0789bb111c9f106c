package pg

// LockSpace is the first key of the project's advisory locks; the second key is one of the numbers below. SQL
// text names the numbers, since migrations cannot use Go constants; this is the only list of them.
const LockSpace = 7233

// The advisory locks in LockSpace.
const (
	LockRelayPartitions   = 1 // migration 3: one caller makes or drops partitions of schema relay
	LockControlPartitions = 2 // migrations 5 and 6: one caller makes or drops partitions of schema control
	// the sink shares it; an erasure takes it alone to wait for the sink's running transactions
	LockErasures           = 3
	LockForeignItemsMarked = 4 // one relay at a time flags signals that name an item of another Decision
)
