package redisbatch

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"
)

// conn is a connection to a single server, for one round trip at a time. After an error it is closed, as what
// still arrives on it could be taken for the replies to other commands.
type conn struct {
	net.Conn
	in         *bufio.Reader
	out        []byte
	roundTrips uint64
	broken     bool // the server is a replica, is loading, or wants a password: close after this round trip
}

// roundTrip sends the commands of the batches and reads their replies. Behind them it sends an ECHO of the
// number of the round trip, the sync token: when that does not come back as the last reply, the replies are
// not those to the commands.
func (c *conn) roundTrip(deadline time.Time, batches []*Batch) error {
	if err := c.SetDeadline(deadline); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	c.roundTrips++
	token := strconv.FormatUint(c.roundTrips, 10)
	c.out = c.out[:0]
	for _, b := range batches {
		b.resetReplies()
		c.out = append(c.out, b.wire...)
	}
	c.out = AppendWords(appendHeader(c.out, 2), "echo", token)
	if _, err := c.Write(c.out); err != nil {
		return fmt.Errorf("redis: write: %w", err)
	}
	for _, b := range batches {
		if err := b.read(c.in); err != nil {
			return err
		}
		c.broken = c.broken || b.err != nil && hasRoleError(b)
	}
	return c.checkToken(token)
}

// checkToken checks that the last reply is the sync token.
func (c *conn) checkToken(token string) error {
	var buf [64]byte
	r, text, err := readReply(c.in, buf[:0])
	switch {
	case err != nil:
		return err
	case r.kind == errorReply:
		return fmt.Errorf("redis: the server does not execute ECHO: %s", text)
	case r.kind != textReply || string(text) != token || c.in.Buffered() > 0:
		return errProtocol
	}
	return nil
}

// hasRoleError reports whether a reply says that another server should be asked, or this one later. Then a
// new conn may lead to the right one.
func hasRoleError(b *Batch) bool {
	for i := range b.replies {
		code, _, _ := bytes.Cut(b.Text(i), []byte(" "))
		if b.replies[i].kind == errorReply &&
			slices.Contains([]string{"READONLY", "LOADING", "MASTERDOWN", "NOAUTH"}, string(code)) {
			return true
		}
	}
	return false
}
