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
	text       []byte   // of the last replies
	shared     [][]byte // the commands that batches of this round trip share
	roundTrips uint64
	broken     bool // the server is a replica, is loading, or wants a password: close after this round trip
}

// roundTrip sends the commands of the batches, behind them those that they share, and reads the replies. Last
// it sends an ECHO of the number of the round trip, the sync token: when that does not come back as the last
// reply, the replies are not those to the commands.
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
	for _, command := range c.sharedBy(batches) {
		c.out = append(c.out, command...)
	}
	c.out = AppendWords(AppendHeader(c.out, 2), "echo", token)
	if _, err := c.Write(c.out); err != nil {
		return fmt.Errorf("redis: write: %w", err)
	}
	for _, b := range batches {
		if err := b.read(c.in); err != nil {
			return err
		}
		c.broken = c.broken || b.err != nil && hasRoleError(b)
	}
	if err := c.readShared(batches); err != nil {
		return err
	}
	return c.checkToken(token)
}

// sharedBy returns the distinct commands that the batches share.
func (c *conn) sharedBy(batches []*Batch) [][]byte {
	clear(c.shared)
	c.shared = c.shared[:0]
	for _, b := range batches {
		same := func(command []byte) bool { return bytes.Equal(command, b.shared) }
		if b.shared != nil && !slices.ContainsFunc(c.shared, same) {
			c.shared = append(c.shared, b.shared)
		}
	}
	return c.shared
}

// readShared reads the replies to the shared commands.
func (c *conn) readShared(batches []*Batch) error {
	for _, command := range c.shared {
		r, text, err := readReply(c.in, c.text[:0])
		if err != nil {
			return err
		}
		c.text = text
		for _, b := range batches {
			if bytes.Equal(command, b.shared) {
				b.addShared(r, text)
			}
		}
	}
	return nil
}

// checkToken checks that the last reply is the sync token.
func (c *conn) checkToken(token string) error {
	r, text, err := readReply(c.in, c.text[:0])
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
