package catalog

import (
	"fmt"
	"strings"
	"testing"
)

func batch(n int) []byte {
	elements := make([]string, n)
	for i := range elements {
		elements[i] = fmt.Sprintf(`{"external_id":"p%d","entity":"product","revision":%d,"document":%s,"raw":%s}`, i, i+1, soundProduct, soundProduct)
	}
	return []byte(`{"observations":[` + strings.Join(elements, ",") + `]}`)
}

func BenchmarkSplit500(b *testing.B) {
	body := batch(500)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Split(body); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDeliver500 does what deliver_observations asks of this package for one batch: split, read,
// complete, digest.
func BenchmarkDeliver500(b *testing.B) {
	body := batch(500)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		elements, err := Split(body)
		if err != nil {
			b.Fatal(err)
		}
		var reader Reader
		for _, element := range elements {
			o := reader.Read(element, "con_1", "str_1")
			if o.Quarantined != nil {
				b.Fatal(o.Quarantined)
			}
			_ = Digest(o.Completed.Document)
		}
	}
}

func BenchmarkCompose(b *testing.B) {
	d, violation := ReadDocument(Product, []byte(soundProduct))
	if violation != nil {
		b.Fatal(violation)
	}
	Complete(d, example())
	b.ReportAllocs()
	for b.Loop() {
		_ = Compose(d.(*CatalogAggregate), 9, nil)
	}
}
