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
	err      error
	turn     chan bool // true: lead the next round trip; false: the commands are executed
}

// reply is the reply to one command.
type reply struct {
	kind       replyKind
	number     int64
	start, end int // of the text within the batch's texts
}

// Begin begins a command of n words, which the caller appends.
func (b *Batch) Begin(n int) {
	b.wire = appendHeader(b.wire, n)
	b.commands++
}

// Word appends a word of a command.
func (b *Batch) Word(word string) { b.wire = appendWord(b.wire, word) }

// Bytes appends a word of a command.
func (b *Batch) Bytes(word []byte) { b.wire = appendWord(b.wire, word) }

// Encoded appends words that AppendWords encoded.
func (b *Batch) Encoded(words []byte) { b.wire = append(b.wire, words...) }

// Add appends a whole command.
func (b *Batch) Add(words ...string) {
	b.Begin(len(words))
	b.wire = AppendWords(b.wire, words...)
}

// Text returns the text of the i-th reply; empty when it is nil. It is valid until the batch is put back.
func (b *Batch) Text(i int) []byte { return b.texts[b.replies[i].start:b.replies[i].end] }

// IsNil reports whether the i-th reply is nil.
func (b *Batch) IsNil(i int) bool { return b.replies[i].kind == nilReply }

// Number returns the number of the i-th reply; 0 when it is none.
func (b *Batch) Number(i int) int64 { return b.replies[i].number }

// resetReplies drops the replies, before the commands are sent, for the first or the second time.
func (b *Batch) resetReplies() {
	b.replies, b.texts, b.err = b.replies[:0], b.texts[:0], nil
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
	b.wire, b.commands = b.wire[:0], 0
	if cap(b.texts) > maxIdleBuffer {
		b.texts = nil
	}
	if cap(b.wire) > maxIdleBuffer {
		b.wire = nil
	}
}
