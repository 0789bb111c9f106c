package stream

import "github.com/segmentio/kafka-go"

// Codec names how a producer compresses a flush as a whole. Consumers read all of them.
type Codec string

// The codecs.
const (
	Plain  Codec = "none"
	Snappy Codec = "snappy"
	LZ4    Codec = "lz4"
	Zstd   Codec = "zstd"
)

// Known tells whether there is such a codec.
func (c Codec) Known() bool { return c == Plain || c.compression() != 0 }

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
