package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// hunk is one place of a patch: lines that are there, and those that take their place.
type hunk struct{ before, after string }

// parse reads a unified diff: the hunks by file, relative to the checkout's root. Line numbers are passed over: a place is found
// by its lines, so that a patch goes on applying while other places of its file change.
func parse(patch string) (map[string][]hunk, error) {
	files := map[string][]hunk{}
	file, open := "", false
	for _, line := range strings.Split(strings.TrimSuffix(patch, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "--- "):
			open = false
		case strings.HasPrefix(line, "+++ b/"):
			file = strings.TrimPrefix(line, "+++ b/")
		case strings.HasPrefix(line, "@@"):
			files[file] = append(files[file], hunk{})
			open = true
		case !open:
			return nil, fmt.Errorf("mutants: a line outside of a hunk: %q", line)
		default:
			h := &files[file][len(files[file])-1]
			text := line[min(1, len(line)):] + "\n"
			if !strings.HasPrefix(line, "+") {
				h.before += text
			}
			if !strings.HasPrefix(line, "-") {
				h.after += text
			}
		}
	}
	return files, nil
}

// change applies hunks to a text. Each must fit at exactly one place.
func change(text string, hunks []hunk) (string, error) {
	for i, h := range hunks {
		if n := strings.Count(text, h.before); n != 1 {
			return "", fmt.Errorf("hunk %d fits at %d places", i+1, n)
		}
		text = strings.Replace(text, h.before, h.after, 1)
	}
	return text, nil
}

// overlay applies a mutant's patch to copies in a folder, and answers the file that `go build -overlay` wants. The checkout is not
// touched.
func overlay(root, dir string, m Mutant) (string, error) {
	replace, err := changes(root, dir, m)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, m.Name+".json")
	return path, writeOverlay(path, replace)
}

func writeOverlay(path string, replace map[string]string) error {
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(path, list, 0o600)
}

// changes writes the changed copies of a mutant's files, and answers them by the files that they stand for.
func changes(root, dir string, m Mutant) (map[string]string, error) {
	patch, err := patches.ReadFile("patches/" + m.Name + ".patch")
	if err != nil {
		return nil, err
	}
	files, err := parse(string(patch))
	if err != nil {
		return nil, err
	}
	replace := map[string]string{}
	for file, hunks := range files {
		path := filepath.Join(root, filepath.FromSlash(file))
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		changed, err := change(string(text), hunks)
		if err != nil {
			return nil, fmt.Errorf("mutants: %s: %s: %w", m.Name, file, err)
		}
		copied := filepath.Join(dir, m.Name+"-"+strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(copied, []byte(changed), 0o600); err != nil {
			return nil, err
		}
		replace[path] = copied
	}
	return replace, nil
}
