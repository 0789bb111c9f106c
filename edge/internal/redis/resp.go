package redis

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// replyKind is the first byte of an answer in Redis' wire format, RESP2.
type replyKind byte

const (
	nilReply    replyKind = '_' // of our own: RESP2 writes it as a text of length -1
	textReply   replyKind = '$'
	statusReply replyKind = '+'
	numberReply replyKind = ':'
	errorReply  replyKind = '-'
)

// maxText bounds the length of a text that is believed: more is a garbled stream.
const maxText = 64 << 20

// errGarbled says that a server's bytes are no answers to what was asked. The connection is of no use from then on.
var errGarbled = errors.New("redis: the answers are garbled")

// appendHead begins a command of so many words.
func appendHead(dst []byte, words int) []byte {
	dst = strconv.AppendInt(append(dst, '*'), int64(words), 10)
	return append(dst, "\r\n"...)
}

// appendWord appends a word of a command.
func appendWord[T string | []byte](dst []byte, word T) []byte {
	dst = strconv.AppendInt(append(dst, '$'), int64(len(word)), 10)
	dst = append(dst, "\r\n"...)
	dst = append(dst, word...)
	return append(dst, "\r\n"...)
}

// appendWords appends words that are the same every time, or where time does not matter.
func appendWords(dst []byte, words ...string) []byte {
	for _, word := range words {
		dst = appendWord(dst, word)
	}
	return dst
}

// splitCommand takes the first command off what appendHead and appendWord wrote.
func splitCommand(wire []byte) (words []any, rest []byte) {
	n, wire := splitLength(wire)
	words = make([]any, n)
	for i := range words {
		var length int
		length, wire = splitLength(wire)
		words[i] = string(wire[:length])
		wire = wire[length+len("\r\n"):]
	}
	return words, wire
}

func splitLength(wire []byte) (n int, rest []byte) {
	for i, c := range wire[1:] {
		if c == '\r' {
			return n, wire[1+i+len("\r\n"):]
		}
		n = 10*n + int(c-'0')
	}
	return n, nil
}

// readReply reads one answer. Texts are appended to room. What is no answer of one value is errGarbled: no command of
// ours has another one.
func readReply(in *bufio.Reader, room []byte) (reply, []byte, error) {
	line, err := readLine(in)
	if err != nil {
		return reply{}, room, err
	}
	r := reply{kind: replyKind(line[0]), start: len(room), end: len(room)}
	switch rest := line[1:]; r.kind {
	case statusReply, errorReply:
		room = append(room, rest...)
		r.end = len(room)
		return r, room, nil
	case numberReply:
		r.number, err = parseNumber(rest)
		return r, room, err
	case textReply:
		n, err := parseNumber(rest)
		switch {
		case err != nil || n < -1 || n > maxText:
			return r, room, errGarbled
		case n < 0:
			r.kind = nilReply
			return r, room, nil
		}
		room, err = readText(in, room, int(n))
		r.end = len(room)
		return r, room, err
	default:
		return r, room, errGarbled
	}
}

// readLine reads up to CRLF, which is left out; there is at least one byte. It is good until the next read.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, errGarbled
	}
	if err != nil {
		return nil, cutOff(err)
	}
	if len(line) < len("+\r\n") || line[len(line)-2] != '\r' {
		return nil, errGarbled
	}
	return line[:len(line)-2], nil
}

func readText(in *bufio.Reader, room []byte, n int) ([]byte, error) {
	start := len(room)
	room = append(room, make([]byte, n+len("\r\n"))...)
	if _, err := io.ReadFull(in, room[start:]); err != nil {
		return room[:start], cutOff(err)
	}
	if room[start+n] != '\r' || room[start+n+1] != '\n' {
		return room[:start], errGarbled
	}
	return room[:start+n], nil
}

func cutOff(err error) error { return fmt.Errorf("redis: read: %w", err) }

// parseNumber reads a decimal with an optional sign.
func parseNumber(b []byte) (n int64, err error) {
	const maxDigits = 19 // a server's numbers are of 64 bits; more is garbled
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > maxDigits {
		return 0, errGarbled
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, errGarbled
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, nil
}
