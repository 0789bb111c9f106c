package campaign

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const maxCrashes = 20

// crashes finds panics, fatal errors and data races in the logs of the services. No fault excuses them.
func crashes(dir string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return nil, err
	}
	var found []string
	for _, path := range paths {
		switch name := filepath.Base(path); {
		case name == "postgres.log", name == "redis.log", strings.HasPrefix(name, "kafka"):
			continue // they may panic because of a full disk
		}
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		in := bufio.NewScanner(file)
		in.Buffer(make([]byte, 1<<16), 1<<22)
		for n := 1; in.Scan(); n++ {
			line := in.Text()
			if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") ||
				strings.Contains(line, "WARNING: DATA RACE") {
				if len(found) < maxCrashes {
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
