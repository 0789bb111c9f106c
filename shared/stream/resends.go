package stream

const (
	resendShare = 0.02 // of the acknowledged records
	resendBurst = 100  // records that may be sent again at once
)

// resends bounds how many records are sent to a second leader while the first one is merely slow, since Kafka
// then has them twice: a token bucket that acknowledged records fill. One flush may overdraw it, so that
// large flushes are sent again too. The producer's mutex guards it.
type resends struct{ left float64 }

func newResends() resends { return resends{left: resendBurst} }

// earn notes acknowledged records.
func (r *resends) earn(records int) {
	r.left = min(r.left+resendShare*float64(records), resendBurst)
}

// allowed reports whether one more flush may be sent again.
func (r *resends) allowed() bool { return r.left >= 1 }

// spend notes records that are sent again.
func (r *resends) spend(records int) { r.left -= float64(records) }
