//go:build !chaos

package crashpoint

import "time"

// Now is the time.
func Now() time.Time { return time.Now() }
