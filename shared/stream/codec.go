package stream

import "github.com/segmentio/kafka-go"

// Codec names the compression of a flush as a whole. Consumers read all codecs.
type Codec string

// The codecs.
const (
	NoCompression Codec = "none"
	Snappy        Codec = "snappy"
	LZ4           Codec = "lz4"
	Zstd          Codec = "zstd"
)

// Known reports whether the codec exists.
func (c Codec) Known() bool { return c == NoCompression || c.compression() != 0 }

func (c Codec) compression() kafka.Compression {
	switch c {
	case Snappy:
		return kafka.Snappy
	case LZ4:
		return kafka.Lz4
	case Zstd:
		return kafka.Zstd
	default:
		return 0
	}
}
