package postgres

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// Binaries are the programs of one version of the server.
type Binaries struct {
	Dir   string
	Major int // of the version: 15, 17, …
}

// Installed lists the servers that are installed here: the one on PATH first, then those that Debian and its
// kin install, the newest first.
func Installed(ctx context.Context) []Binaries {
	var dirs []string
	if path, err := exec.LookPath("initdb"); err == nil {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(target))
		}
	}
	debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	var found []Binaries
	for _, dir := range append(dirs, debian...) {
		if b, err := binariesIn(ctx, dir); err == nil && !slices.Contains(found, b) {
			found = append(found, b)
		}
	}
	slices.SortStableFunc(found[min(len(dirs), len(found)):],
		func(a, b Binaries) int { return b.Major - a.Major })
	return found
}

// Fetched returns the binaries that Fetch left below dir, if any.
func Fetched(ctx context.Context, dir string) (Binaries, bool) {
	if _, err := os.Stat(filepath.Join(dir, "complete")); err != nil {
		return Binaries{}, false
	}
	b, err := binariesIn(ctx, filepath.Join(dir, "server", "bin"))
	return b, err == nil
}

// Choose picks the server for the data in a folder: the first that can read data that is there, else the
// first of all. The note, when it is not empty, tells a person about data that the chosen server cannot read.
func Choose(servers []Binaries, dir string) (chosen Binaries, note string) {
	versions := dataVersions(dir)
	for _, b := range servers {
		if slices.Contains(versions, b.Major) {
			return b, ""
		}
	}
	chosen = servers[0]
	if len(versions) > 0 {
		note = fmt.Sprintf("%s holds data of PostgreSQL %d, which PostgreSQL %d cannot read: that data "+
			"stays where it is, and this run "+
			"begins with an empty database. Install PostgreSQL %d to use the old data again, or delete %s.",
			dir, versions[0], chosen.Major, versions[0], dataDir(dir, versions[0]))
	}
	return chosen, note
}

// binariesIn checks that a folder holds a server and asks it for its version.
func binariesIn(ctx context.Context, dir string) (Binaries, error) {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return Binaries{}, err
	}
	text, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return Binaries{}, err
	}
	number := regexp.MustCompile(`\d+`).Find(text)
	major, err := strconv.Atoi(string(number))
	if err != nil {
		return Binaries{}, fmt.Errorf("the version of %s is not in %q", dir, text)
	}
	return Binaries{dir, major}, nil
}
