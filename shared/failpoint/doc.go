// Package failpoint owns the named points at which a fault test kills or stops a process. In ordinary builds
// Hit does nothing. With the build tag "chaos" it reads CRASHPOINT="name[:n[:kill|stop]]" and sends its own
// process SIGKILL (the default) or SIGSTOP at the n-th hit (by default the first). It injects nothing else: a
// real machine has these faults too.
package failpoint

// The points, first on the path of a signal and then on that of an entity.
const (
	IntakeBeforeClaim = "intake.before_claim"
	IntakeClaimed     = "intake.claimed"
	IntakeProduced    = "intake.produced"
	IntakeConfirmed   = "intake.confirmed"
	SinkBeforeCommit  = "sink.before_commit"
	SinkAfterCommit   = "sink.after_commit"
	SinkCommitted     = "sink.offsets_committed" // the offsets were sent; the broker may have refused them
	DeliverLeased     = "deliver.leased"
	DeliverSent       = "deliver.sent"
	DeliverAnswered   = "deliver.answered"
	DeliverSettled    = "deliver.settled"
	EraseChunk        = "erase.chunk" // after each chunk of an erasure

	ObserveBeforeCommit = "observe.before_commit"
	ObserveAfterCommit  = "observe.after_commit"
	WebhookBeforeCommit = "webhook.before_commit"
	WebhookAfterCommit  = "webhook.after_commit"
	FetchBegun          = "fetch.begun" // one entity has its number, and the provider is not asked yet
	FetchAnswered       = "fetch.answered"
	FetchBeforeCommit   = "fetch.before_commit"
	FetchApplied        = "fetch.applied"
	PageAnswered        = "page.answered" // a page of a bootstrap run
	PageBeforeCommit    = "page.before_commit"
	PageAfterCommit     = "page.after_commit"
	KeyCommitted        = "key.committed" // a key is issued or revoked, and Redis does not hold it yet
	KeyWritten          = "key.written"   // Redis holds it, and the answer is not sent yet
	ItemsRead           = "items.read"    // items are read for the push to Redis
	ItemsWritten        = "items.written"
	// an edge has read an item from PostgreSQL, and Redis does not hold it yet
	ItemLoaded  = "item.loaded"
	SagaCalling = "saga.calling" // before each call of an installation to its provider
	SagaCalled  = "saga.called"  // after the call, before anything is stored
)
