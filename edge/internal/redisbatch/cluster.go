package redisbatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// cluster is the transport to a cluster. The client knows which server holds which key.
type cluster struct{ client goredis.UniversalClient }

// execute implements transport.
func (c *cluster) execute(deadline time.Time, batches []*Batch) error {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	pipe := c.client.Pipeline()
	var cmds []*goredis.Cmd
	for _, b := range batches {
		b.resetReplies()
		for _, rest := range [...][]byte{b.wire, b.shared} {
			for len(rest) > 0 {
				var words []any
				words, rest = splitCommand(rest)
				cmds = append(cmds, pipe.Do(ctx, words...))
			}
		}
	}
	_, err := pipe.Exec(ctx)
	var reported goredis.Error
	if err != nil && !errors.As(err, &reported) {
		return fmt.Errorf("redis: pipeline: %w", err)
	}
	for _, b := range batches {
		for range b.commands {
			r, err := b.result(cmds[0].Result())
			if err != nil {
				return err
			}
			b.addReply(r)
			cmds = cmds[1:]
		}
		if b.shared == nil {
			continue
		}
		r, err := b.result(cmds[0].Result())
		if err != nil {
			return err
		}
		b.addShared(r, b.texts[r.start:r.end])
		cmds = cmds[1:]
	}
	return nil
}

// warm implements transport: the client learns which servers there are. It makes conns to each by itself.
func (c *cluster) warm(ctx context.Context, _ int) error { return c.client.Ping(ctx).Err() }

// close implements transport: the client is its owner's.
func (c *cluster) close() {}

// result returns a reply that the client has read; its text is in the batch's texts.
func (b *Batch) result(value any, err error) (reply, error) {
	r := reply{start: len(b.texts)}
	var reported goredis.Error
	switch v := value.(type) {
	case string:
		r.kind, b.texts = textReply, append(b.texts, v...)
	case int64:
		r.kind, r.number = numberReply, v
	case nil:
		switch {
		case errors.Is(err, goredis.Nil):
			r.kind = nilReply
		case errors.As(err, &reported):
			r.kind, b.texts = errorReply, append(b.texts, reported.Error()...)
		default:
			return r, fmt.Errorf("redis: pipeline: %w", err)
		}
	default:
		return r, errProtocol
	}
	r.end = len(b.texts)
	return r, nil
}
