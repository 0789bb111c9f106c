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
	"storefront.internal/edge/internal/redisbatch"
	"storefront.internal/shared/ident"
)

// Items implements itemread.Cache. Control writes items when they change; the edges write those that are
// missing:
//
//	<prefix>item:<connection id>:<item id>   refresh_revision in decimal, "\n", the body of getCatalogItem;
//	                                         no body: deleted
//	<prefix>items:changed                    channel of hints: lines "<connection id> <item id> <revision>"
//
// Both write by the same script, which never replaces a version by an older one. An ACL has to allow GET,
// STRLEN, SUBSCRIBE and EVAL (of GETRANGE, SET, DEL), and ECHO and AUTH, which redisbatch sends.
type Items struct {
	client  goredis.UniversalClient
	batcher *redisbatch.Batcher
	prefix  string
}

// itemTTL is how long an unchanged item stays; the next read writes it again.
const itemTTL = time.Hour

// maxRevisionText is the length of the greatest revision in decimal with the "\n". A record that is not
// longer has no body, as every body is longer than that.
const maxRevisionText = 20

var _ itemread.Cache = (*Items)(nil)

// NewItems returns the items kept under the prefix. It reads by the batcher, which should be for items only,
// so that they do not wait for claims.
func NewItems(client goredis.UniversalClient, batcher *redisbatch.Batcher, prefix string) *Items {
	return &Items{client: client, batcher: batcher, prefix: prefix}
}

func (i *Items) record(c ident.ConnectionID, item ident.ItemID) string {
	return i.prefix + "item:" + string(c) + ":" + string(item)
}

// Item implements itemread.Cache.
func (i *Items) Item(ctx context.Context, k itemread.Key) (itemread.Version, bool, error) {
	b := i.batcher.Get()
	defer i.batcher.Put(b)
	b.Add("get", i.record(k.Connection, k.Item))
	if err := i.batcher.Do(ctx, b); err != nil {
		return itemread.Version{}, false, err
	}
	if b.IsNil(0) {
		return itemread.Version{}, false, nil
	}
	var err error
	revision, body, found := bytes.Cut(b.Text(0), []byte("\n"))
	v := itemread.Version{Body: bytes.Clone(body)}
	if found && len(revision) < maxRevisionText {
		v.Revision, err = strconv.ParseInt(string(revision), 10, 64)
	}
	if err != nil || v.Revision < 1 {
		return itemread.Version{}, false, errors.New("item record is malformed")
	}
	return v, true, nil
}

// fillScript is set-if-greater. It compares revisions as decimals without leading zeros, since Lua's numbers
// are not exact above 2^53. It replaces a malformed record. When a full server does not take the new version,
// the script deletes the old one, so that it is not read after the newer one was published.
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
		strconv.FormatInt(v.Revision, 10), v.Body, int64(itemTTL/time.Second)).Err()
	if err != nil {
		return fmt.Errorf("fill item: %w", err)
	}
	return nil
}

// Present implements itemread.Cache by the lengths of the records, without reading them.
func (i *Items) Present(ctx context.Context, c ident.ConnectionID,
	items []ident.ItemID) ([]itemread.Presence, error) {
	b := i.batcher.Get()
	defer i.batcher.Put(b)
	for _, item := range items {
		b.Add("strlen", i.record(c, item))
	}
	if err := i.batcher.Do(ctx, b); err != nil {
		return nil, err
	}
	present := make([]itemread.Presence, len(items))
	for n := range items {
		switch length := b.Number(n); {
		case length > maxRevisionText:
			present[n] = itemread.Exists
		case length > 0:
			present[n] = itemread.Deleted
		}
	}
	return present, nil
}

// Hints calls changed for every item that control says has changed, until ctx ends. A hint that is missed
// only delays the change until the copies of the item expire.
func (i *Items) Hints(ctx context.Context, changed func(k itemread.Key, revision int64)) error {
	return subscribe(ctx, i.client, i.prefix+"items:changed",
		func(payload string) { readHints(payload, changed) })
}

// readHints calls changed for each well-formed line.
func readHints(payload string, changed func(k itemread.Key, revision int64)) {
	for line := range strings.Lines(payload) {
		fields := strings.Fields(line)
		if len(fields) != 3 || !ident.Valid(ident.Connection, fields[0]) ||
			!ident.Valid(ident.Item, fields[1]) {
			continue
		}
		if revision, err := strconv.ParseInt(fields[2], 10, 64); err == nil {
			changed(itemread.Key{Connection: ident.ConnectionID(fields[0]), Item: ident.ItemID(fields[1])},
				revision)
		}
	}
}
