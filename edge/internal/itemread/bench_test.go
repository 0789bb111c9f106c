package itemread

import (
	"fmt"
	"sync/atomic"
	"testing"

	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/ident"
)

// BenchmarkItemFromMemory reads one hot item, and many, by all processors.
func BenchmarkItemFromMemory(b *testing.B) {
	for _, count := range []int{1, 5000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			s := newStores()
			r := newService(s, func(c *Config) { c.TTL = 1 << 60 })
			keys := make([]Key, count)
			for i := range keys {
				keys[i] = Key{"con_0192f3a4b5c6d7e8f9a0b1c2d3",
					ident.ItemID(fmt.Sprintf("itm_lhto54sgatsoe2dof4gv046log%06d", i))}
				s.change(keys[i], 1, false, true)
				expectB(b, r, keys[i])
			}
			b.ReportAllocs()
			var next atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				i := int(next.Add(7919))
				for pb.Next() {
					i++
					expectB(b, r, keys[i%count])
				}
			})
		})
	}
}

func expectB(b *testing.B, r *Service, k Key) {
	if _, err := r.Read(b.Context(),
		Request{ConnectionID: k.Connection, ItemID: k.Item,
			Client: ratelimit.Subject{Key: "key_1"}}); err != nil {
		b.Fatal(err)
	}
}
