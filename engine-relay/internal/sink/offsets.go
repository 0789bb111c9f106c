package sink

import (
	"context"
	"errors"
	"fmt"
)

// ErrBehind says that PostgreSQL lacks records that this relay has stored: it was restored to an earlier time
// or failed over to a standby that was behind. Or another relay has begun with a partition meanwhile. The
// relay must begin with its partitions again.
var ErrBehind = errors.New("sink: PostgreSQL is not where this relay left it")

// Partition is a partition of a topic.
type Partition struct {
	Topic string
	ID    int
}

// Span is consecutive offsets of a partition, without To.
type Span struct {
	Partition
	From, To int64
}

// Position is how far a partition is stored: PostgreSQL has all records before Next.
type Position struct {
	Partition
	Next int64
}

// Resumption is what a relay knows of a partition when it begins with it.
type Resumption struct {
	Partition
	Committed int64 // the group's offset, negative when it has none
	// Marked says that a relay committed it that stores positions too; an older release or a tool does not.
	Marked bool
	First  int64 // the first offset that Kafka has
}

// Held is what PostgreSQL has of a partition: the Kafka cluster that its offsets are of, and how far it is
// stored.
type Held struct {
	ClusterID string
	Next      int64
}

// Start returns where the partition begins, given what PostgreSQL holds of it (nil for nothing):
//
//	group's offset    PostgreSQL        begins at
//	none              anything          the first record
//	without the mark  anything          the group's offset
//	marked            same cluster      the smaller of both
//	marked            nothing, another  the first record: PostgreSQL is older than the mark
func (r Resumption) Start(cluster string, held *Held) int64 {
	switch {
	case r.Committed < 0:
		return r.First
	case !r.Marked:
		return r.Committed
	case held == nil || held.ClusterID != cluster:
		return min(r.Committed, r.First)
	}
	return min(r.Committed, held.Next)
}

// claim is what a relay expects of PostgreSQL when it stores records of its partitions.
type claim struct {
	assignment string
	least      map[Partition]int64
}

// CheckPositions compares what PostgreSQL has with the least that it must have.
func CheckPositions(least map[Partition]int64, positions []Position) error {
	found := make(map[Partition]int64, len(positions))
	for _, p := range positions {
		found[p.Partition] = p.Next
	}
	for p, least := range least {
		next, known := found[p]
		if !known {
			return fmt.Errorf("%w: %s/%d belongs to another assignment", ErrBehind, p.Topic, p.ID)
		}
		if next < least {
			return fmt.Errorf("%w: %s/%d is stored to %d, this relay had stored to %d", ErrBehind, p.Topic,
				p.ID, next, least)
		}
	}
	return nil
}

// message is what a batch remembers of a record's offsets.
type message struct {
	offset int64
	Span
}

func (m *Message) partition() Partition { return Partition{m.Topic, m.Partition} }

// Claim makes the transaction of the batch store its offsets as well, for the relay's assignment, and compare
// what PostgreSQL has with the least that it must have: what was stored before the transaction began.
func (b *Batch) Claim(assignment string, least map[Partition]int64) {
	b.claim = &claim{assignment: assignment, least: least}
}

// markStored stores the offsets of the batch. It comes last in the transaction, since the rows are locked
// until its end.
func (b *batchTx) markStored(ctx context.Context, tx Tx) error {
	if b.claim == nil || len(b.messages) == 0 {
		return nil
	}
	least := make(map[Partition]int64)
	for i := range b.messages {
		p := b.messages[i].Partition
		least[p] = b.claim.least[p]
	}
	positions, err := tx.MarkStored(ctx, b.claim.assignment, spans(b.messages))
	if err != nil {
		return err
	}
	return CheckPositions(least, positions)
}

// spans joins the offsets of messages that follow each other.
func spans(messages []message) []Span {
	var out []Span
	at := make(map[Partition]int)
	for i := range messages {
		s := messages[i].Span
		if last, known := at[s.Partition]; known && out[last].To == s.From {
			out[last].To = s.To
			continue
		}
		at[s.Partition] = len(out)
		out = append(out, s)
	}
	return out
}

// divide gives the messages of the batch to its halves: each half gets those that lie in it completely. It
// returns the others with everything that the batch has of them. After the halves are stored, storing these
// again changes nothing but the offsets; it makes their transaction look at every signal of them, so that
// offsets never cover a record that a restore of PostgreSQL between the halves took away.
func (b *batchTx) divide(halves []batchTx) batchTx {
	if b.claim == nil {
		return batchTx{}
	}
	all := b.parts()
	rest := batchTx{claim: b.claim, again: true}
	of := make([]map[record]int, len(halves))
	for i := range halves {
		of[i] = halves[i].parts()
		halves[i].claim = b.claim
	}
	divided := make(map[record]bool)
next:
	for _, m := range b.messages {
		at := record{m.Partition, m.offset}
		for i := range halves {
			if n := all[at]; n > 0 && of[i][at] == n {
				halves[i].messages = append(halves[i].messages, m)
				continue next
			}
		}
		rest.messages = append(rest.messages, m)
		divided[at] = true
	}
	for _, d := range b.decisions {
		if divided[d.message.record()] {
			rest.decisions = append(rest.decisions, d)
		}
	}
	for _, p := range b.signals {
		if divided[p.request.message.record()] {
			rest.signals = append(rest.signals, p)
		}
	}
	for _, p := range b.parked {
		if divided[p.record()] {
			rest.parked = append(rest.parked, p)
		}
	}
	return rest
}

// record identifies a record of Kafka.
type record struct {
	Partition
	offset int64
}

func (m *Message) record() record { return record{m.partition(), m.Offset} }

func (p *Parked) record() record { return record{Partition{p.Topic, p.Partition}, p.Offset} }

// parts counts what the batch has of each record.
func (b *batchTx) parts() map[record]int {
	n := make(map[record]int)
	for _, d := range b.decisions {
		n[d.message.record()]++
	}
	for _, p := range b.signals {
		n[p.request.message.record()]++
	}
	for i := range b.parked {
		n[b.parked[i].record()]++
	}
	return n
}
