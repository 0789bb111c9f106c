package redis

import (
	"bufio"
	"fmt"
)

// batch is the commands of one request, in wire format, and their answers. Get it from a Pipeline and give it back.
type batch struct {
	wire     []byte
	commands int
	replies  []reply // one per command once they are answered
	room     []byte  // what the replies' texts lie in
	err      error
	told     chan bool // true: lead the next flight; false: the commands are answered
}

// reply is the answer to one command.
type reply struct {
	kind       replyKind
	number     int64
	start, end int // of the text in the batch's room
}

// begin starts a command of so many words; the caller appends them to wire.
func (b *batch) begin(words int) {
	b.wire = appendHead(b.wire, words)
	b.commands++
}

// add appends a whole command.
func (b *batch) add(words ...string) {
	b.begin(len(words))
	b.wire = appendWords(b.wire, words...)
}

// text is the text of an answer; empty when it was nil. It is good until the batch is given back.
func (b *batch) text(i int) []byte { return b.room[b.replies[i].start:b.replies[i].end] }

func (b *batch) isNil(i int) bool { return b.replies[i].kind == nilReply }

func (b *batch) number(i int) int64 { return b.replies[i].number }

// forget drops the answers, before the commands are sent and before they are sent once more.
func (b *batch) forget() {
	b.replies, b.room, b.err = b.replies[:0], b.room[:0], nil
}

// answer notes the next answer.
func (b *batch) answer(r reply, room []byte) {
	b.replies, b.room = append(b.replies, r), room
	if r.kind == errorReply && b.err == nil {
		b.err = fmt.Errorf("redis: %s", room[r.start:r.end])
	}
}

// read reads the answers to all commands.
func (b *batch) read(in *bufio.Reader) error {
	for range b.commands {
		r, room, err := readReply(in, b.room)
		if err != nil {
			return err
		}
		b.answer(r, room)
	}
	return nil
}

// keptRoom bounds the memory that an idle batch keeps.
const keptRoom = 64 << 10

func (b *batch) reset() {
	b.forget()
	b.wire, b.commands = b.wire[:0], 0
	if cap(b.room) > keptRoom {
		b.room = nil
	}
	if cap(b.wire) > keptRoom {
		b.wire = nil
	}
}
