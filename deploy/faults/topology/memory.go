package topology

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// clusterMemory is the available memory with which a run has three brokers: each takes about 700 MB.
const clusterMemory = 8 << 20 // kB

// AffordableBrokers returns 3 when this machine has the memory for them and 1 otherwise.
func AffordableBrokers() int {
	if availableMemory() < clusterMemory {
		return 1
	}
	return 3
}

// availableMemory returns the available memory in kB, or 0 where it is unknown.
func availableMemory() (kilobytes int64) {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer func() { _ = file.Close() }()
	for in := bufio.NewScanner(file); in.Scan(); {
		if value, ok := strings.CutPrefix(in.Text(), "MemAvailable:"); ok {
			if _, err := fmt.Sscan(value, &kilobytes); err != nil {
				return 0
			}
		}
	}
	return kilobytes
}
