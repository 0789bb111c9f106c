package itemread

import (
	"bytes"
	"compress/gzip"
	"strconv"
	"sync"

	"storefront.internal/shared/ident"
)

// Key names an item. The connection is part of it, so that an item of another connection does not exist.
type Key struct {
	Connection ident.ConnectionID
	Item       ident.ItemID
}

// Version is what a store holds of an item. An empty body means that the item was deleted at this revision.
type Version struct {
	Revision int64
	Body     []byte // as it is served; never changed
}

func (v Version) deleted() bool { return len(v.Body) == 0 }

// compressFrom is the length from which a body is worth compressing.
const compressFrom = 1 << 10

// Document is one version of an item as it is served. It is shared and must not be changed.
type Document struct {
	Revision int64
	Body     []byte
	ETag     []byte // strong: item id and refresh_revision
	GzipETag []byte // of the gzip coding, whose bytes differ

	once       sync.Once
	compressed []byte
}

// NewDocument returns the document of a version that is not deleted.
func NewDocument(item ident.ItemID, v Version) *Document {
	tag := append(append([]byte{'"'}, item...), '.')
	tag = strconv.AppendInt(tag, v.Revision, 10)
	return &Document{Revision: v.Revision, Body: v.Body,
		ETag: append(bytes.Clone(tag), '"'), GzipETag: append(tag, `-gzip"`...)}
}

// Gzip returns the body in the gzip coding, which is made once; nil when it would not be smaller.
func (d *Document) Gzip() []byte {
	if len(d.Body) <= compressFrom {
		return nil
	}
	d.once.Do(func() {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(d.Body) // a buffer does not fail
		if err := w.Close(); err == nil && b.Len() < len(d.Body) {
			d.compressed = bytes.Clone(b.Bytes())
		}
	})
	return d.compressed
}

// size is what the document takes of memory, including the compressed copy that may be made.
func (d *Document) size() int64 {
	n := int64(entryOverhead + len(d.Body) + len(d.ETag) + len(d.GzipETag))
	if len(d.Body) > compressFrom {
		n += int64(len(d.Body))
	}
	return n
}
