package overload

import (
	"bytes"

	"storefront.internal/shared/signal"
)

// Class is how dear a request is. The cheapest are refused first.
type Class uint8

// The classes, cheapest first.
const (
	Impressions Class = iota // a batch of impressions only
	Ordinary                 // everything else
	Sales                    // a batch that holds a purchase or a cart signal
)

const classes = 3

// String implements fmt.Stringer; the words are metric labels.
func (c Class) String() string {
	return [classes]string{"impressions", "ordinary", "sales"}[c]
}

// ClassOfBatch looks for the types of signals in a body that is not decoded: for every member of the name "type",
// wherever it is. A body that is no batch, or that spells a type with escapes, gets some class: it costs or wins its
// sender a turn, and nothing else.
func ClassOfBatch(body []byte) Class {
	impressions, others := false, false
	for {
		i := bytes.IndexByte(body, ':')
		if i < 0 {
			break
		}
		before := body[:i]
		body = body[i+1:]
		if !bytes.HasSuffix(before, []byte(`"type"`)) && !bytes.HasSuffix(trimRight(before), []byte(`"type"`)) {
			continue
		}
		t, _ := signal.ParseType(quoted(body))
		switch {
		case t == signal.Purchase || t.Cart():
			return Sales
		case t == signal.Impression:
			impressions = true
		default:
			others = true
		}
	}
	if impressions && !others {
		return Impressions
	}
	return Ordinary
}

func trimRight(b []byte) []byte { return bytes.TrimRight(b, " \t\r\n") }

// quoted is what stands between the quotes at the beginning of b.
func quoted(b []byte) []byte {
	b = bytes.TrimLeft(b, " \t\r\n")
	if len(b) == 0 || b[0] != '"' {
		return nil
	}
	b = b[1:min(len(b), 32)]
	return b[:max(0, bytes.IndexByte(b, '"'))]
}
