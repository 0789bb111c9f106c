// Package crashpoint owns the named places at which a fault test kills or stops a process. In ordinary builds Hit
// does nothing; with the build tag "chaos" it reads CRASHPOINT="name[:n[:kill|stop]]" and sends its own process
// SIGKILL (the default) or SIGSTOP at the n-th hit (the first by default). In the same build CHAOS_CLOCK_OFFSET, a
// duration, makes Now the clock of a machine that is so much ahead or behind. It refuses to do anything else: there is
// no fault here that a real machine would not have.
package crashpoint

// The places, in the order of a signal's way and then of an entity's.
const (
	IntakeBeforeClaim = "intake.before_claim"
	IntakeClaimed     = "intake.claimed"
	IntakeProduced    = "intake.produced"
	IntakeConfirmed   = "intake.confirmed"
	SinkBeforeCommit  = "sink.before_commit"
	SinkAfterCommit   = "sink.after_commit"
	SinkCommitted     = "sink.offsets_committed" // or not: the broker was told
	DeliverLeased     = "deliver.leased"
	DeliverSent       = "deliver.sent"
	DeliverAnswered   = "deliver.answered"
	DeliverSettled    = "deliver.settled"
	EraseChunk        = "erase.chunk" // behind each chunk of an erasure

	ObserveBeforeCommit = "observe.before_commit" // operation 4
	ObserveAfterCommit  = "observe.after_commit"
	WebhookBeforeCommit = "webhook.before_commit" // operation 12
	WebhookAfterCommit  = "webhook.after_commit"
	FetchBegun          = "fetch.begun" // of one entity, behind its number and before the provider is asked
	FetchAnswered       = "fetch.answered"
	FetchBeforeCommit   = "fetch.before_commit"
	FetchApplied        = "fetch.applied"
	PageAnswered        = "page.answered" // of a load
	PageBeforeCommit    = "page.before_commit"
	PageAfterCommit     = "page.after_commit"
	KeyCommitted        = "key.committed" // issued or revoked, and Redis does not know
	KeyWritten          = "key.written"   // Redis knows, and nobody has noted that it does
	ItemsRead           = "items.read"    // for the push to Redis
	ItemsWritten        = "items.written"
	ItemLoaded          = "item.loaded"  // by an edge from PostgreSQL, and Redis does not have it
	SagaCalling         = "saga.calling" // before each call of an installation to its provider
	SagaCalled          = "saga.called"  // behind it, before anything is stored
)
