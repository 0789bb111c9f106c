package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// cluster carries flights by way of the client, which knows which server holds which key, and learns when that changes.
type cluster struct{ client goredis.UniversalClient }

// carry implements carrier.
func (c *cluster) carry(deadline time.Time, batches []*batch) error {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	pipe := c.client.Pipeline()
	var cmds []*goredis.Cmd
	for _, b := range batches {
		b.forget()
		for rest := b.wire; len(rest) > 0; {
			var words []any
			words, rest = splitCommand(rest)
			cmds = append(cmds, pipe.Do(ctx, words...))
		}
	}
	_, err := pipe.Exec(ctx)
	var answer goredis.Error
	if err != nil && !errors.As(err, &answer) {
		return fmt.Errorf("redis: pipeline: %w", err)
	}
	for _, b := range batches {
		for range b.commands {
			if err := b.take(cmds[0].Result()); err != nil {
				return err
			}
			cmds = cmds[1:]
		}
	}
	return nil
}

// take notes an answer that the client has read.
func (b *batch) take(value any, err error) error {
	r := reply{start: len(b.room), end: len(b.room)}
	room := b.room
	var answer goredis.Error
	switch v := value.(type) {
	case string:
		r.kind, room = textReply, append(room, v...)
	case int64:
		r.kind, r.number = numberReply, v
	case nil:
		switch {
		case errors.Is(err, goredis.Nil):
			r.kind = nilReply
		case errors.As(err, &answer):
			r.kind, room = errorReply, append(room, answer.Error()...)
		default:
			return fmt.Errorf("redis: pipeline: %w", err)
		}
	default:
		return errGarbled
	}
	r.end = len(room)
	b.answer(r, room)
	return nil
}
