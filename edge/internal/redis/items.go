package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"storefront.internal/edge/internal/itemread"
	"storefront.internal/shared/ident"
)

// Items implements itemread.Cache. Control writes what is here when items change; the edges fill in what is missing:
//
//	<prefix>item:<connection id>:<item id>   refresh_revision in decimal, "\n", the body of operation 2; no body: deleted
//	<prefix>items:changed                    channel: lines "<connection id> <item id> <refresh_revision>"; a hint only
//
// Both write by the same script, which never replaces a version by an older one. The commands are GET, STRLEN and EVAL (of GETRANGE, SET, DEL).
type Items struct {
	client goredis.UniversalClient
	pipe   *Pipeline
	prefix string
}

// itemLife bounds how long an item stays that nobody changes; it is filled again when it is read.
const itemLife = time.Hour

// maxRevisionText is the length of the greatest revision in decimal, with the line's end: a record that is not longer
// holds no body, and every body is longer than that.
const maxRevisionText = 20

var _ itemread.Cache = (*Items)(nil)

// NewItems returns the items kept under the prefix. The pipeline is for reading; it should be no other's, so that items
// do not wait for claims.
func NewItems(client goredis.UniversalClient, pipe *Pipeline, prefix string) *Items {
	return &Items{client: client, pipe: pipe, prefix: prefix}
}

func (i *Items) record(c ident.ConnectionID, item ident.ItemID) string {
	return i.prefix + "item:" + string(c) + ":" + string(item)
}

// Item implements itemread.Cache.
func (i *Items) Item(ctx context.Context, k itemread.Key) (itemread.Version, bool, error) {
	b := i.pipe.batch()
	defer i.pipe.free(b)
	b.add("get", i.record(k.Connection, k.Item))
	if err := i.pipe.Do(ctx, b); err != nil {
		return itemread.Version{}, false, err
	}
	if b.isNil(0) {
		return itemread.Version{}, false, nil
	}
	var err error
	revision, body, found := bytes.Cut(b.text(0), []byte("\n"))
	v := itemread.Version{Body: bytes.Clone(body)}
	if found && len(revision) < maxRevisionText {
		v.Revision, err = strconv.ParseInt(string(revision), 10, 64)
	}
	if err != nil || v.Revision < 1 {
		return itemread.Version{}, false, errors.New("item record is not readable")
	}
	return v, true, nil
}

// fillScript is set-if-greater. Revisions are compared as decimals without leading zeros, since Lua's numbers are not
// exact above 2^53. A record that is not readable is replaced. A server that is full takes no new version, but lets go of
// the old one, so that it does not outlive the newer.
const fillScript = `
local old = string.match(redis.call('getrange', KEYS[1], 0, 20), '^([1-9]%d*)\n')
local new = ARGV[1]
if old and (#old > #new or #old == #new and old >= new) then return 0 end
local set = redis.pcall('set', KEYS[1], new .. '\n' .. ARGV[2], 'ex', ARGV[3])
if set['err'] then
	redis.call('del', KEYS[1])
	return set
end
return 1`

// Fill implements itemread.Cache.
func (i *Items) Fill(ctx context.Context, k itemread.Key, v itemread.Version) error {
	err := i.client.Eval(ctx, fillScript, []string{i.record(k.Connection, k.Item)},
		strconv.FormatInt(v.Revision, 10), v.Body, int64(itemLife/time.Second)).Err()
	if err != nil {
		return fmt.Errorf("fill item: %w", err)
	}
	return nil
}

// Present implements itemread.Cache by the lengths of the records, which are not read.
func (i *Items) Present(ctx context.Context, c ident.ConnectionID, items []ident.ItemID) ([]itemread.Presence, error) {
	b := i.pipe.batch()
	defer i.pipe.free(b)
	for _, item := range items {
		b.add("strlen", i.record(c, item))
	}
	if err := i.pipe.Do(ctx, b); err != nil {
		return nil, err
	}
	present := make([]itemread.Presence, len(items))
	for n := range items {
		switch length := b.number(n); {
		case length > maxRevisionText:
			present[n] = itemread.Here
		case length > 0:
			present[n] = itemread.Deleted
		}
	}
	return present, nil
}

// Hints calls changed whenever control says that an item changed, until the context ends. The client subscribes again by
// itself after a lost connection; what is missed meanwhile ends with the life of the copies.
func (i *Items) Hints(ctx context.Context, changed func(k itemread.Key, revision int64)) error {
	sub := i.client.Subscribe(ctx, i.prefix+"items:changed")
	defer func() { _ = sub.Close() }()
	messages := sub.Channel(goredis.WithChannelSize(1000))
	for {
		select {
		case <-ctx.Done():
			return nil
		case m, open := <-messages:
			if !open {
				return nil
			}
			readHints(m.Payload, changed)
		}
	}
}

// readHints passes on the lines that are readable.
func readHints(payload string, changed func(k itemread.Key, revision int64)) {
	for line := range strings.Lines(payload) {
		fields := strings.Fields(line)
		if len(fields) != 3 || !ident.Valid(ident.Connection, fields[0]) || !ident.Valid(ident.Item, fields[1]) {
			continue
		}
		if revision, err := strconv.ParseInt(fields[2], 10, 64); err == nil {
			changed(itemread.Key{Connection: ident.ConnectionID(fields[0]), Item: ident.ItemID(fields[1])}, revision)
		}
	}
}
