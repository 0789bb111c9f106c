package main

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRunbooksQuoteLogLines checks that the source has each log line that a runbook quotes.
func TestRunbooksQuoteLogLines(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	for _, module := range []string{"edge", "control", "engine-relay", "shared"} {
		err := filepath.WalkDir(filepath.Join(root, module),
			func(path string, _ fs.DirEntry, err error) error {
				if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
					source.WriteString(read(t, path))
				}
				return err
			})
		if err != nil {
			t.Fatal(err)
		}
	}
	books, err := filepath.Glob(root + "/deploy/runbooks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := 0
	for _, book := range books {
		for _, m := range regexp.MustCompile(`log line "([^"]+)"`).FindAllStringSubmatch(read(t, book), -1) {
			quoted++
			if !strings.Contains(source.String(), `"`+m[1]) {
				t.Errorf("%s: no log line %q", filepath.Base(book), m[1])
			}
		}
	}
	if quoted < 8 {
		t.Errorf("only %d log lines are quoted", quoted)
	}
}
