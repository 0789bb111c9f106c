// Package crashpoint owns the named places at which a fault test kills or stops a process. In ordinary builds Hit
// does nothing; with the build tag "chaos" it reads CRASHPOINT="name[:n[:kill|stop]]" and sends its own process
// SIGKILL (the default) or SIGSTOP at the n-th hit (the first by default). It refuses to do anything else: there is
// no fault here that a real machine would not have.
package crashpoint

// The places, in the order of a signal's way.
const (
	IntakeBeforeClaim = "intake.before_claim"
	IntakeClaimed     = "intake.claimed"
	IntakeProduced    = "intake.produced"
	IntakeConfirmed   = "intake.confirmed"
	SinkBeforeCommit  = "sink.before_commit"
	SinkAfterCommit   = "sink.after_commit"
	DeliverLeased     = "deliver.leased"
	DeliverSent       = "deliver.sent"
	DeliverAnswered   = "deliver.answered"
	SagaCalling       = "saga.calling" // before each call of an installation to its provider
	SagaCalled        = "saga.called"  // behind it, before anything is stored
)
