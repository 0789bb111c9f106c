package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// remembered is the number of signals in Redis besides those that are measured. Redis doubles a full table,
// and while its keys move each command costs up to six times as much. In production the number of keys is
// stable; so the table is made large once, and all turns meet the same table.
const remembered = 1_200_000

// memory are the keys of signals in Redis.
type memory struct {
	client *redis.Client
	size   int64 // in keys, with what other benchmarks left
}

// newMemory fills Redis.
func newMemory(b *testing.B, address string) *memory {
	b.Helper()
	m := &memory{client: redis.NewClient(&redis.Options{Addr: address})}
	b.Cleanup(func() { _ = m.client.Close() })
	const part = 10_000
	fill := redis.NewScript(`
for i = ARGV[1], ARGV[2] do
    redis.call('set', string.format('remembered:%048d', i), 'done', 'px', 86400000)
end
return 1`)
	for i := 0; i < remembered; i += part {
		check(b, fill.Run(context.Background(), m.client, nil, i, i+part-1).Err())
	}
	// Each lookup moves a part of a table that is being doubled; after these it is done.
	look := redis.NewScript(`
local key = string.format('remembered:%048d', 0)
for i = 1, ARGV[1] do redis.call('exists', key) end
return 1`)
	for i := 0; i < remembered; i += part {
		check(b, look.Run(context.Background(), m.client, nil, part).Err())
	}
	m.size = m.sweep(b)
	return m
}

// forget removes what a turn left behind.
func (m *memory) forget(b *testing.B) {
	b.Helper()
	if size := m.sweep(b); size > m.size+10_000 {
		b.Fatal(fmt.Errorf("Redis remembers %d keys of a turn", size-m.size))
	}
	time.Sleep(100 * time.Millisecond) // what was unlinked is freed beside the commands
}

// sweep removes the claims of edges in small steps and returns the number of keys that are left.
func (m *memory) sweep(b *testing.B) int64 {
	b.Helper()
	sweep := redis.NewScript(`
local page = redis.call('scan', ARGV[1], 'count', 2000)
local gone = {}
for _, key in ipairs(page[2]) do
    if key:find('claim:', 1, true) or key:find('attempt:', 1, true) or key:find('line:', 1, true) then
        gone[#gone + 1] = key
    end
end
if #gone > 0 then redis.call('unlink', unpack(gone)) end
return page[1]`)
	for cursor := "0"; ; {
		next, err := sweep.Run(context.Background(), m.client, nil, cursor).Text()
		check(b, err)
		if cursor = next; cursor == "0" {
			break
		}
	}
	size, err := m.client.DBSize(context.Background()).Result()
	check(b, err)
	return size
}
