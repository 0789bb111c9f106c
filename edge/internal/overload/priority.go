package overload

import (
	"bytes"

	"storefront.internal/shared/signal"
)

// Priority says how late a request is refused under overload.
type Priority uint8

// The priorities, lowest first.
const (
	Sheddable Priority = iota // a batch of impressions only, and a dry run
	Normal                    // everything else
	Critical                  // a batch that holds a purchase or a cart signal
)

const priorities = 3

// String implements fmt.Stringer; the words are values of a metric label.
func (p Priority) String() string {
	return [priorities]string{"impressions", "ordinary", "sales"}[p]
}

// PriorityOfBatch returns the priority of a batch that is not decoded yet. It looks at each member named
// "type", wherever it stands. A body that is no batch, or that spells a type with escapes, gets some
// priority; nothing but the order of refusal depends on it.
func PriorityOfBatch(body []byte) Priority {
	impressions, others := false, false
	for {
		i := bytes.IndexByte(body, ':')
		if i < 0 {
			break
		}
		before := body[:i]
		body = body[i+1:]
		if !bytes.HasSuffix(bytes.TrimRight(before, " \t\r\n"), []byte(`"type"`)) {
			continue
		}
		t, _ := signal.ParseType(quoted(body))
		switch {
		case t == signal.Purchase || t.Cart():
			return Critical
		case t == signal.Impression:
			impressions = true
		default:
			others = true
		}
	}
	if impressions && !others {
		return Sheddable
	}
	return Normal
}

// quoted returns the text between the quotes at the beginning of b, nil when b does not begin with a quote.
func quoted(b []byte) []byte {
	b = bytes.TrimLeft(b, " \t\r\n")
	if len(b) == 0 || b[0] != '"' {
		return nil
	}
	b = b[1:min(len(b), 32)]
	return b[:max(0, bytes.IndexByte(b, '"'))]
}
