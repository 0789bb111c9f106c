package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/ident"
)

// itemLife is the life of an item's record, of a deleted one's too: longer than any fill that began before.
const itemLife = time.Hour

// Items is what Redis knows of what edges serve: `item:<connection>:<item>` holds a decimal refresh_revision, a line
// feed, and the body of operation 2, which is empty for a deleted item; channel `items:changed` hints at what was
// written, a line "connection item revision" each.
type Items struct {
	client redis.UniversalClient
	prefix string
	raise  *redis.Script
}

// raiseItem reads no more of a record than its revision. A server that is full takes no new version, but lets go of the
// old one, so that it does not outlive the newer.
const raiseItem = `
local there = tonumber(string.match(redis.call('GETRANGE', KEYS[1], 0, 20), '^(%d+)\n'))
if there and there >= tonumber(ARGV[1]) then
	return 0
end
local set = redis.pcall('SET', KEYS[1], ARGV[1] .. '\n' .. ARGV[2], 'EX', ARGV[3])
if set['err'] then
	redis.call('DEL', KEYS[1])
	return set
end
return 1`

// NewItems returns the Items under a prefix.
func NewItems(client redis.UniversalClient, prefix string) *Items {
	return &Items{client: client, prefix: prefix, raise: redis.NewScript(raiseItem)}
}

// PutItems writes the items whose revision is greater than the one that is there, and hints at all of them: where an
// edge's own fill came first, the other edges have not heard of the revision yet.
func (i *Items) PutItems(ctx context.Context, c ident.ConnectionID, items []observation.Served) (written int, err error) {
	cmds, err := i.run(ctx, c, items, func(p redis.Pipeliner, keys []string, args ...any) *redis.Cmd {
		return i.raise.EvalSha(ctx, p, keys, args...)
	})
	if redis.HasErrorPrefix(err, "NOSCRIPT") { // a server that forgot it; whoever wrote once writes nothing twice
		cmds, err = i.run(ctx, c, items, func(p redis.Pipeliner, keys []string, args ...any) *redis.Cmd {
			return i.raise.Eval(ctx, p, keys, args...)
		})
	}
	if err != nil {
		return 0, fmt.Errorf("put items: %w", err)
	}
	var hint strings.Builder
	for n, cmd := range cmds {
		if set, _ := cmd.Int(); set == 1 { // its error would have been the pipeline's
			written++
		}
		fmt.Fprintf(&hint, "%s %s %d\n", c, items[n].ItemID, items[n].RefreshRevision)
	}
	if err := i.client.Publish(ctx, i.prefix+"items:changed", hint.String()).Err(); err != nil {
		return written, fmt.Errorf("hint at items: %w", err)
	}
	return written, nil
}

func (i *Items) run(ctx context.Context, c ident.ConnectionID, items []observation.Served,
	eval func(p redis.Pipeliner, keys []string, args ...any) *redis.Cmd,
) ([]*redis.Cmd, error) {
	cmds := make([]*redis.Cmd, 0, len(items))
	_, err := i.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for n := range items {
			it := &items[n]
			key := i.prefix + "item:" + string(c) + ":" + string(it.ItemID)
			cmds = append(cmds, eval(p, []string{key}, strconv.FormatInt(it.RefreshRevision, 10), it.Body, int(itemLife.Seconds())))
		}
		return nil
	})
	return cmds, err
}
