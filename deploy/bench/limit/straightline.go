package limit

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"
	"github.com/valyala/fasthttp"
)

// line records signals in the simplest way: for each request one pipeline of claims, one record by kafka-go's
// Writer, one pipeline of confirmations. It validates nothing, and its response is all accepted or all
// duplicate.
type line struct {
	redis  *redis.Client
	writer *kafka.Writer
}

const (
	claimLife = time.Hour
	linger    = time.Millisecond
)

func straightLine(address string, brokers []string, topic string) (fasthttp.RequestHandler, error) {
	l := &line{
		redis: redis.NewClient(&redis.Options{Addr: address, PoolSize: 64}),
		writer: &kafka.Writer{
			Addr: kafka.TCP(brokers...), Topic: topic, BatchTimeout: linger, RequiredAcks: kafka.RequireAll,
			Balancer: &kafka.RoundRobin{},
		},
	}
	return l.handle, l.redis.Ping(context.Background()).Err()
}

func (l *line) handle(ctx *fasthttp.RequestCtx) {
	ids := idsOf(ctx.PostBody())
	fresh, err := l.claim(ctx, ids)
	if err == nil && len(fresh) > 0 {
		err = l.writer.WriteMessages(ctx, kafka.Message{Value: bytes.Clone(ctx.PostBody())})
	}
	if err == nil && len(fresh) > 0 {
		err = l.confirm(ctx, fresh)
	}
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusServiceUnavailable)
		return
	}
	ctx.SetStatusCode(fasthttp.StatusAccepted)
	ctx.SetContentType("application/json")
	ctx.SetBody(results(ids))
}

// claim returns the ids that were not claimed before.
func (l *line) claim(ctx context.Context, ids []string) (fresh []string, err error) {
	pipe := l.redis.Pipeline()
	answers := make([]*redis.StatusCmd, len(ids))
	for i, id := range ids {
		answers[i] = pipe.SetArgs(ctx, "line:"+id, "pending",
			redis.SetArgs{Mode: "NX", Get: true, TTL: claimLife})
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	for i, a := range answers {
		if a.Err() == redis.Nil { //nolint:errorlint // as above: nothing was there
			fresh = append(fresh, ids[i])
		}
	}
	return fresh, nil
}

func (l *line) confirm(ctx context.Context, ids []string) error {
	pipe := l.redis.Pipeline()
	for _, id := range ids {
		pipe.Set(ctx, "line:"+id, "done", claimLife)
	}
	_, err := pipe.Exec(ctx)
	return err
}

func idsOf(body []byte) (ids []string) {
	name := []byte(`"signal_id":"`)
	for {
		_, rest, found := bytes.Cut(body, name)
		if !found {
			return ids
		}
		id, rest, _ := bytes.Cut(rest, []byte{'"'})
		ids, body = append(ids, string(id)), rest
	}
}

func results(ids []string) []byte {
	out := []byte(`{"results":[`)
	for i, id := range ids {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"index":`...)
		out = append(out, byte('0'+i%10))
		out = append(out, `,"signal_id":"`...)
		out = append(out, id...)
		out = append(out, `","status":"accepted"}`...)
	}
	return append(out, `]}`...)
}
