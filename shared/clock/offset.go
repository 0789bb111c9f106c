//go:build chaos

package clock

import (
	"fmt"
	"os"
	"time"
)

// offset is the error of this machine's clock. It is read once, at the start of the process.
var offset = parseOffset(os.Getenv("CHAOS_CLOCK_OFFSET"))

func parseOffset(text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(fmt.Sprintf("clock: CHAOS_CLOCK_OFFSET: %v", err))
	}
	return d
}

// Now returns the current time plus the offset.
func Now() time.Time { return time.Now().Add(offset) }
