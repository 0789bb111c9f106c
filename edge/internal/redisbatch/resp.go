package redisbatch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// replyKind is the first byte of a reply in RESP2, the wire format.
type replyKind byte

const (
	nilReply    replyKind = '_' // not RESP2, which has a text of length -1
	textReply   replyKind = '$'
	statusReply replyKind = '+'
	numberReply replyKind = ':'
	errorReply  replyKind = '-'
)

// maxText bounds the length of a text; more is errProtocol.
const maxText = 64 << 20

// errProtocol says that the bytes from the server are not the replies to the commands. The conn cannot be
// used again.
var errProtocol = errors.New("redis: the replies are not RESP2, or not those to the commands")

// AppendHeader begins a command of n words.
func AppendHeader(dst []byte, n int) []byte {
	dst = strconv.AppendInt(append(dst, '*'), int64(n), 10)
	return append(dst, "\r\n"...)
}

// appendWord appends a word of a command.
func appendWord(dst []byte, word string) []byte {
	dst = append(AppendLength(dst, len(word)), word...)
	return append(dst, "\r\n"...)
}

// AppendLength begins a word of that length. Its bytes and "\r\n" follow.
func AppendLength(dst []byte, length int) []byte {
	dst = strconv.AppendInt(append(dst, '$'), int64(length), 10)
	return append(dst, "\r\n"...)
}

// AppendJoined appends a word of a command that consists of these parts, in wire format.
func AppendJoined(dst []byte, parts ...string) []byte {
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	dst = AppendLength(dst, length)
	for _, part := range parts {
		dst = append(dst, part...)
	}
	return append(dst, "\r\n"...)
}

// AppendWords appends words of a command, in wire format.
func AppendWords(dst []byte, words ...string) []byte {
	for _, word := range words {
		dst = appendWord(dst, word)
	}
	return dst
}

// splitCommand splits the first command off the wire format of commands.
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

// readReply reads one reply. Its text is appended to texts. A reply that is no single value is errProtocol:
// no command of the edge has such a reply.
func readReply(in *bufio.Reader, texts []byte) (reply, []byte, error) {
	line, err := readLine(in)
	if err != nil {
		return reply{}, texts, err
	}
	r := reply{kind: replyKind(line[0]), start: len(texts), end: len(texts)}
	switch rest := line[1:]; r.kind {
	case statusReply, errorReply:
		texts = append(texts, rest...)
		r.end = len(texts)
		return r, texts, nil
	case numberReply:
		r.number, err = parseNumber(rest)
		return r, texts, err
	case textReply:
		n, err := parseNumber(rest)
		switch {
		case err != nil || n < -1 || n > maxText:
			return r, texts, errProtocol
		case n < 0:
			r.kind = nilReply
			return r, texts, nil
		}
		texts, err = readText(in, texts, int(n))
		r.end = len(texts)
		return r, texts, err
	default:
		return r, texts, errProtocol
	}
}

// readLine reads up to CRLF, which it leaves out; there is at least one byte. The line is valid until the
// next read.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, errProtocol
	}
	if err != nil {
		return nil, readError(err)
	}
	if len(line) < len("+\r\n") || line[len(line)-2] != '\r' {
		return nil, errProtocol
	}
	return line[:len(line)-2], nil
}

func readText(in *bufio.Reader, texts []byte, n int) ([]byte, error) {
	start := len(texts)
	texts = append(texts, make([]byte, n+len("\r\n"))...)
	if _, err := io.ReadFull(in, texts[start:]); err != nil {
		return texts[:start], readError(err)
	}
	if texts[start+n] != '\r' || texts[start+n+1] != '\n' {
		return texts[:start], errProtocol
	}
	return texts[:start+n], nil
}

func readError(err error) error { return fmt.Errorf("redis: read: %w", err) }

// parseNumber reads a decimal of 64 bits with an optional sign.
func parseNumber(b []byte) (int64, error) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return 0, errProtocol
	}
	return n, nil
}
