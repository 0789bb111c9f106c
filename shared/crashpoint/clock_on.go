//go:build chaos

package crashpoint

import (
	"fmt"
	"os"
	"time"
)

// offset is how wrong this machine's clock is. Like the armed point it is read once.
var offset = offsetFrom(os.Getenv("CHAOS_CLOCK_OFFSET"))

func offsetFrom(text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(fmt.Sprintf("crashpoint: CHAOS_CLOCK_OFFSET: %v", err))
	}
	return d
}

// Now is the time of a machine whose clock is wrong.
func Now() time.Time { return time.Now().Add(offset) }
