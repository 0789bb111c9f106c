package collect

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// cachedItems reads the revisions of the items in Redis. The value of a key item:<connection>:<item> begins
// with a line that holds the revision; a deleted item has nothing else.
func (c *collector) cachedItems(ctx context.Context) error {
	client := redis.NewClient(&redis.Options{Addr: c.RedisAddr})
	defer func() { _ = client.Close() }()
	keys := client.Scan(ctx, 0, "*item:con_*", 1000).Iterator()
	for keys.Next(ctx) {
		names := strings.Split(keys.Val(), ":")
		text, err := client.GetRange(ctx, keys.Val(), 0, 21).Result()
		if err != nil {
			return err
		}
		head, body, _ := strings.Cut(text, "\n")
		if head == "" {
			continue // it expired meanwhile
		}
		revision, err := strconv.ParseInt(head, 10, 64)
		if err != nil {
			return fmt.Errorf("%s begins with %q", keys.Val(), text)
		}
		c.state.Cached = append(c.state.Cached,
			Aggregate{Connection: names[len(names)-2], Item: names[len(names)-1], Revision: revision,
				Deleted: body == ""})
	}
	return keys.Err()
}
