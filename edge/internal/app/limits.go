package app

import (
	"cmp"
	"math"
)

// The bounds of the defaults that follow the memory limit of the process.
const (
	bodyBytesUnlimited = 64 << 20  // without a memory limit
	maxBodyBytes       = 256 << 20 // however large the limit is
	maxConnections     = 4096
	connectionBytes    = 32 << 10 // of an idle connection: buffers, header, stack
)

// withMemoryLimit fills the settings whose default follows the memory limit of the process (math.MaxInt64:
// none).
func (c Config) withMemoryLimit(limit int64) Config {
	bodies, conns := int64(bodyBytesUnlimited), int64(maxConnections)
	if limit != math.MaxInt64 {
		bodies = min(limit/4, maxBodyBytes)
		conns = min(limit/3/connectionBytes, maxConnections)
	}
	c.MaxBodyBytes = cmp.Or(c.MaxBodyBytes, int(bodies))
	c.MaxConnections = cmp.Or(c.MaxConnections, int(conns))
	return c
}
