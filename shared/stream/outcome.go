package stream

import (
	"errors"

	"github.com/segmentio/kafka-go"
)

// Outcome is what is known of a record that was handed to a Producer.
type Outcome uint8

const (
	// Unknown means that the record may be stored, now or a little later. It is the zero value, so that a forgotten one claims nothing.
	Unknown Outcome = iota
	// Acknowledged means that every in-sync replica has the record.
	Acknowledged
	// Refused means that the record is not stored and never will be.
	Refused
)

// String implements fmt.Stringer; the words are metric labels.
func (o Outcome) String() string {
	switch o {
	case Acknowledged:
		return "acknowledged"
	case Refused:
		return "refused"
	default:
		return "unknown"
	}
}

// Errors of a Producer. Each comes with Refused.
var (
	ErrFull     = errors.New("stream: too many bytes pending")
	ErrTooLarge = errors.New("stream: record too large")
	ErrClosed   = errors.New("stream: producer closed")
)

// errRevoked is what the transport reads instead of records when nobody waits for them any more.
var errRevoked = errors.New("stream: flush revoked before it was sent")

// refusal tells whether a broker's error means that it appended nothing. The list holds what a leader checks before it appends. What is missing here is not proof: a leader that times out,
// loses its replicas after the append, or is no leader any more while the write waits for acknowledgement, may have appended.
func refusal(err error) bool {
	for _, code := range []kafka.Error{
		kafka.MessageSizeTooLarge, kafka.RecordListTooLarge, kafka.InvalidMessage, kafka.InvalidTopic, kafka.NotEnoughReplicas, kafka.InvalidRequiredAcks,
		kafka.TopicAuthorizationFailed, kafka.ClusterAuthorizationFailed, kafka.InvalidTimestamp, kafka.UnsupportedForMessageFormat, kafka.PolicyViolation,
		kafka.UnsupportedCompressionType, kafka.InvalidRecord,
	} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

// tooLarge tells whether the broker wants fewer bytes at once.
func tooLarge(err error) bool {
	return errors.Is(err, kafka.MessageSizeTooLarge) || errors.Is(err, kafka.RecordListTooLarge)
}

// permanent tells whether another attempt would meet the same refusal.
func permanent(err error) bool { return refusal(err) && !errors.Is(err, kafka.NotEnoughReplicas) }
