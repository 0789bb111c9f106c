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

// itemTTL is the lifetime of an item's record, also of a deleted one's: longer than any fill that began
// before.
const itemTTL = time.Hour

// Items writes what edges serve of items: `item:<connection>:<item>` holds a decimal refresh_revision, a line
// feed and the body, which is empty for a deleted item. Channel `items:changed` announces writes, one line
// "connection item revision" each.
type Items struct {
	client     redis.UniversalClient
	prefix     string
	setIfNewer *redis.Script
}

// setItemIfNewer reads only the revision of a record. When the server has no memory for the new record, it
// deletes the old one, which must not outlive the newer revision.
const setItemIfNewer = `
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
	return &Items{client: client, prefix: prefix, setIfNewer: redis.NewScript(setItemIfNewer)}
}

// PutItems writes the items that are newer than the stored ones, and announces all of them: where an edge's
// fill came first, other edges have not learned of the revision yet.
func (i *Items) PutItems(ctx context.Context, c ident.ConnectionID,
	items []observation.ServedItem) (written int, err error) {
	cmds, err := i.run(ctx, c, items, func(p redis.Pipeliner, keys []string, args ...any) *redis.Cmd {
		return i.setIfNewer.EvalSha(ctx, p, keys, args...)
	})
	// the server lost the script; items that were written are not newer again
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmds, err = i.run(ctx, c, items, func(p redis.Pipeliner, keys []string, args ...any) *redis.Cmd {
			return i.setIfNewer.Eval(ctx, p, keys, args...)
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
		return written, fmt.Errorf("announce items: %w", err)
	}
	return written, nil
}

func (i *Items) run(ctx context.Context, c ident.ConnectionID, items []observation.ServedItem,
	eval func(p redis.Pipeliner, keys []string, args ...any) *redis.Cmd,
) ([]*redis.Cmd, error) {
	cmds := make([]*redis.Cmd, 0, len(items))
	_, err := i.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for n := range items {
			it := &items[n]
			key := i.prefix + "item:" + string(c) + ":" + string(it.ItemID)
			cmds = append(cmds, eval(p, []string{key}, strconv.FormatInt(it.RefreshRevision, 10), it.Body,
				int(itemTTL.Seconds())))
		}
		return nil
	})
	return cmds, err
}
