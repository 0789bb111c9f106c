package redisbatch

import (
	"bufio"
	"fmt"
)

// Batch is the commands of one request, in wire format, and their replies.
type Batch struct {
	wire     []byte
	commands int
	replies  []reply // one for each command once they are executed
	texts    []byte  // of the replies
	shared   []byte  // a command in wire format, not in wire; nil: none
	number   reply   // to it
	err      error
	turn     chan bool // true: lead the next round trip; false: the commands are executed
}

// reply is the reply to one command.
type reply struct {
	kind       replyKind
	number     int64
	start, end int // of the text within the batch's texts
}

// Encode appends n commands in wire format, which f appends.
func (b *Batch) Encode(n int, f func(dst []byte) []byte) {
	b.wire = f(b.wire)
	b.commands += n
}

// Add appends a whole command.
func (b *Batch) Add(words ...string) {
	b.wire = AppendWords(AppendHeader(b.wire, len(words)), words...)
	b.commands++
}

// Share adds a command, in wire format, that reads a number. It is sent behind the commands of all batches of
// the round trip, once for those that share it.
func (b *Batch) Share(command []byte) { b.shared = command }

// Shared returns the number that the shared command read.
func (b *Batch) Shared() int64 { return b.number.number }

// Text returns the text of the i-th reply; empty when it is nil. It is valid until the batch is put back.
func (b *Batch) Text(i int) []byte { return b.texts[b.replies[i].start:b.replies[i].end] }

// IsNil reports whether the i-th reply is nil.
func (b *Batch) IsNil(i int) bool { return b.replies[i].kind == nilReply }

// Number returns the number of the i-th reply; 0 when it is none.
func (b *Batch) Number(i int) int64 { return b.replies[i].number }

// resetReplies drops the replies, before the commands are sent, for the first or the second time.
func (b *Batch) resetReplies() {
	b.replies, b.texts, b.number, b.err = b.replies[:0], b.texts[:0], reply{}, nil
}

// addShared adds the reply to the shared command.
func (b *Batch) addShared(r reply, text []byte) {
	b.number = r
	if r.kind == errorReply && b.err == nil {
		b.err = fmt.Errorf("redis: %s", text)
	}
}

// addReply adds the next reply, whose text is in texts already.
func (b *Batch) addReply(r reply) {
	b.replies = append(b.replies, r)
	if r.kind == errorReply && b.err == nil {
		b.err = fmt.Errorf("redis: %s", b.texts[r.start:r.end])
	}
}

// read reads the replies to all commands.
func (b *Batch) read(in *bufio.Reader) error {
	for range b.commands {
		r, texts, err := readReply(in, b.texts)
		if err != nil {
			return err
		}
		b.texts = texts
		b.addReply(r)
	}
	return nil
}

// maxIdleBuffer bounds the memory that an idle batch keeps.
const maxIdleBuffer = 64 << 10

func (b *Batch) reset() {
	b.resetReplies()
	b.wire, b.commands, b.shared = b.wire[:0], 0, nil
	if cap(b.texts) > maxIdleBuffer {
		b.texts = nil
	}
	if cap(b.wire) > maxIdleBuffer {
		b.wire = nil
	}
}
