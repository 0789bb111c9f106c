package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// dataDir is where the data of one major version lies: a server cannot read the data of another one.
func dataDir(dir string, major int) string { return filepath.Join(dir, fmt.Sprint("data-", major)) }

// legacyDir is where data of any version lay before each version had a folder.
func legacyDir(dir string) string { return filepath.Join(dir, "data") }

// dataVersions are the major versions whose data a folder holds, the newest first.
func dataVersions(dir string) []int {
	folders, _ := filepath.Glob(filepath.Join(dir, "data-*"))
	var all []int
	for _, folder := range append(folders, legacyDir(dir)) {
		if v := versionOf(folder); v != 0 {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	return slices.Compact(all)
}

// versionOf is the major version of a data folder, or 0.
func versionOf(data string) int {
	text, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if err != nil {
		return 0
	}
	major, _, _ := strings.Cut(strings.TrimSpace(string(text)), ".")
	v, _ := strconv.Atoi(major)
	return v
}

// moveLegacy gives data that lies where it lay before each version had a folder, the folder of its version.
func moveLegacy(dir string) error {
	old := legacyDir(dir)
	version := versionOf(old)
	if version == 0 {
		return nil
	}
	if _, err := os.Stat(dataDir(dir, version)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := clearStale(old); err != nil {
		return err
	}
	return os.Rename(old, dataDir(dir, version))
}
