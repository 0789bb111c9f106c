package postgres

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// Find looks for an installed server: initdb and postgres side by side on PATH, else the newest one where Debian and its kin
// put them. It answers the folder of the binaries.
func Find() (bin string, ok bool) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil && complete(filepath.Dir(real)) {
			return filepath.Dir(real), true
		}
	}
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(dirs, func(a, b string) int { return major(b) - major(a) })
	for _, dir := range dirs {
		if complete(dir) {
			return dir, true
		}
	}
	return "", false
}

func complete(bin string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return false
		}
	}
	return true
}

func major(bin string) int {
	n, err := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	if err != nil {
		return 0
	}
	return n
}
