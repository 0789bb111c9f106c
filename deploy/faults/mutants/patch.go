package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// hunk is a part of a patch: the lines before and after the change.
type hunk struct{ before, after string }

// parse reads a unified diff and returns the hunks by file. It ignores the line numbers: a hunk is found by
// its lines, so that the patch applies after other changes of the file.
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

// applyHunks applies hunks to a text. Each must match exactly once.
func applyHunks(text string, hunks []hunk) (string, error) {
	for i, h := range hunks {
		if n := strings.Count(text, h.before); n != 1 {
			return "", fmt.Errorf("hunk %d matches %d times", i+1, n)
		}
		text = strings.Replace(text, h.before, h.after, 1)
	}
	return text, nil
}

// overlay applies the patch of a mutant to copies of the files and returns the path of the file for `go build
// -overlay`.
func overlay(root, dir string, m Mutant) (string, error) {
	replace, err := patchedFiles(root, dir, m)
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

// patchedFiles writes patched copies of the files and returns their paths by the path of the original.
func patchedFiles(root, dir string, m Mutant) (map[string]string, error) {
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
		changed, err := applyHunks(string(text), hunks)
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
