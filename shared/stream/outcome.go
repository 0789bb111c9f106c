package stream

import (
	"errors"

	"github.com/segmentio/kafka-go"
)

// Outcome is what is known of a record that was handed to a Producer.
type Outcome uint8

const (
	// Unknown means that the record may be stored, now or later. It is the zero value, so that an outcome
	// that was never set claims nothing.
	Unknown Outcome = iota
	// Acknowledged means that every in-sync replica has the record.
	Acknowledged
	// Refused means that the record was never handed to the transport, and never will be.
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

// Errors of a Producer. ErrFull, ErrClosed and ErrUnreachable come with Refused; ErrTooLarge comes with
// Refused when the record is over the producer's limit, and with Unknown when the broker found it too large.
var (
	ErrFull        = errors.New("stream: too many bytes pending")
	ErrTooLarge    = errors.New("stream: record too large")
	ErrClosed      = errors.New("stream: producer closed")
	ErrUnreachable = errors.New("stream: no leader of a partition answers")
)

// tooLarge reports whether the broker wants fewer bytes at once.
func tooLarge(err error) bool {
	return errors.Is(err, kafka.MessageSizeTooLarge) || errors.Is(err, kafka.RecordListTooLarge)
}

// permanent reports whether another attempt would end with the same error.
func permanent(err error) bool {
	for _, code := range []kafka.Error{
		kafka.MessageSizeTooLarge, kafka.RecordListTooLarge, kafka.InvalidMessage, kafka.InvalidTopic,
		kafka.InvalidRequiredAcks,
		kafka.TopicAuthorizationFailed, kafka.ClusterAuthorizationFailed, kafka.InvalidTimestamp,
		kafka.UnsupportedForMessageFormat,
		kafka.PolicyViolation, kafka.UnsupportedCompressionType, kafka.InvalidRecord,
	} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}
