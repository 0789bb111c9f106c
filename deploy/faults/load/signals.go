package load

import (
	"encoding/hex"
	"math/rand/v2"
	"time"

	"storefront.internal/deploy/faults/history"
)

// signal is the wire form of one signal, as a client of ours would write it.
type signal struct {
	ID         string         `json:"signal_id,omitempty"`
	Type       string         `json:"type,omitempty"`
	OccurredAt string         `json:"occurred_at,omitempty"`
	Decision   string         `json:"decision_id,omitempty"`
	Item       string         `json:"item_id,omitempty"`
	Variant    string         `json:"variant_id,omitempty"`
	Position   *int           `json:"position,omitempty"`
	Quantity   *int           `json:"quantity,omitempty"`
	Order      string         `json:"order_external_id,omitempty"`
	Visitor    map[string]any `json:"visitor,omitempty"`
	Client     map[string]any `json:"client,omitempty"`
}

// batch is a request's signals, on the wire and in the history.
type batch struct {
	signals []signal
	sent    []history.Sent
}

const (
	meanBatch  = 20
	spoiledOne = 40 // in so many signals is malformed, and as many again name a Decision that is not ours
)

// compose makes a batch of new signals of one shop. Others lends Decisions that are not the shop's.
func compose(s *shop, others *shop, random *rand.Rand) batch {
	var b batch
	for range 1 + random.IntN(2*meanBatch-1) {
		d, ok := s.decide(random)
		if !ok {
			return b
		}
		one := sound(d, random)
		one.Visitor["visitor_id"] = "vis_" + history.Canary(s.connection, one.ID)
		rec := history.Sent{Canary: history.Canary(s.connection, one.ID)}
		switch random.IntN(spoiledOne) {
		case 0:
			spoil(&one, random)
			rec.Malformed = true
		case 1:
			one.Decision = foreign(one.Decision, others, random)
			rec.Foreign = true
		}
		rec.ID, rec.Type, rec.Decision, rec.Item, rec.Variant = one.ID, one.Type, one.Decision, one.Item, one.Variant
		rec.Quantity, rec.OccurredAt = one.Quantity, one.OccurredAt
		b.signals, b.sent = append(b.signals, one), append(b.sent, rec)
	}
	return b
}

// sound is a signal of any type that breaks no rule.
func sound(d decision, random *rand.Rand) signal {
	p := d.items[random.IntN(min(3, len(d.items)))]
	s := signal{
		ID: "sig_" + name(random), Decision: d.id, Item: p.Item, OccurredAt: instant(random), Visitor: map[string]any{"session_id": "ses_" + name(random)},
	}
	if random.IntN(2) == 0 {
		s.Variant = p.Variant
	}
	if random.IntN(10) == 0 {
		s.Client = map[string]any{"page_url": "https://shop.example/p/" + p.Item, "timezone": "America/Argentina/Buenos_Aires"}
	}
	switch random.IntN(12) {
	case 0:
		s.Type, s.Item, s.Variant = "impression", "", ""
	case 1, 2:
		s.Type, s.Position = "click", new(random.IntN(20))
	case 3:
		s.Type, s.Quantity = "purchase", new(1+random.IntN(5))
	case 4:
		s.Type = "dismiss"
	case 5:
		s.Type = "remove_from_cart"
	case 6, 7:
		s.Type, s.Quantity = "update_quantity", new(random.IntN(6))
	default:
		s.Type = "add_to_cart"
	}
	return s
}

// instant is a shopper's clock: mostly right, sometimes days late (a page that kept its signals), sometimes ahead.
func instant(random *rand.Rand) string {
	at := time.Now().Add(-time.Duration(random.Int64N(int64(time.Minute))))
	switch random.IntN(60) {
	case 0, 1:
		at = at.Add(-time.Duration(random.Int64N(int64(72 * time.Hour))))
	case 2:
		at = at.Add(2 * time.Hour)
	}
	return at.UTC().Format("2006-01-02T15:04:05.000000Z")
}

// spoil breaks one rule of a signal.
func spoil(s *signal, random *rand.Rand) {
	switch random.IntN(5) {
	case 0:
		s.OccurredAt = "yesterday"
	case 1:
		s.Type = "look"
	case 2:
		s.Decision = ""
	case 3:
		s.Type, s.Item, s.Variant, s.Position, s.Quantity = "impression", "", "", nil, new(2)
	default:
		s.Type, s.Position, s.Quantity = "update_quantity", nil, new(-1)
	}
}

// foreign is a well-formed Decision id that was not minted for the connection: another one's, or one with a changed byte.
func foreign(own string, others *shop, random *rand.Rand) string {
	if random.IntN(2) == 0 {
		if d, ok := others.decide(random); ok {
			return d.id
		}
	}
	b := []byte(own)
	at := len("dec_") + random.IntN(len(b)-len("dec_")-1) // the last letter holds bits that count for nothing
	if b[at] == 'A' {
		b[at] = 'B'
	} else {
		b[at] = 'A'
	}
	return string(b)
}

// name is a random name of 24 hexadecimal digits. Its randomness is the seed's, so a run's ids are those of its seed.
func name(random *rand.Rand) string {
	var b [12]byte
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return hex.EncodeToString(b[:])
}
