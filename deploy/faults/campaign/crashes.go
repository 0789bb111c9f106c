package campaign

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const mostCrashes = 20

// crashes looks for what no fault excuses in the logs of our own processes: a panic, the runtime giving up, a data race.
func crashes(dir string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return nil, err
	}
	var found []string
	for _, path := range paths {
		switch filepath.Base(path) {
		case "postgres.log", "kafka.log", "redis.log": // which panic about a full disk, as they should
			continue
		}
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		in := bufio.NewScanner(file)
		in.Buffer(make([]byte, 1<<16), 1<<22)
		for n := 1; in.Scan(); n++ {
			line := in.Text()
			if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") || strings.Contains(line, "WARNING: DATA RACE") {
				if len(found) < mostCrashes {
					found = append(found, fmt.Sprintf("%s:%d: %s", filepath.Base(path), n, line))
				}
			}
		}
		if err := in.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
	return found, nil
}
