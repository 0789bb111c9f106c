package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// files returns the repository's text files by path from its root. Caches, binaries and recorded inputs are
// left out.
func files(t *testing.T) map[string]string {
	t.Helper()
	skipped := []string{".git", ".cache", ".run", "bin", "testdata", "golden", "node_modules"}
	extensions := []string{".go", ".md", ".yaml", ".yml", ".sql", ".sh", ".tpl", ".gotmpl", ".txt", ".py",
		".json", ".toml", ""}
	texts := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains(skipped, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !slices.Contains(extensions, filepath.Ext(path)) {
			return nil
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		texts[name] = string(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fence   = regexp.MustCompile("(?s)```.*?```")
	held    = regexp.MustCompile(`(?m)^\| Held by \|(.*)\|$`)
	named   = regexp.MustCompile("`((?:Test|Benchmark|Fuzz)[A-Za-z0-9_]+)`")
	quoted  = regexp.MustCompile("`([^`]+)`")
)

// anchor is the fragment that GitHub gives a heading.
func anchor(title string) string {
	title = strings.ToLower(regexp.MustCompile("[`*]").ReplaceAllString(title, ""))
	title = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`).ReplaceAllString(title, "$1")
	return strings.ReplaceAll(regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(title, ""), " ", "-")
}

func TestLinksLeadSomewhere(t *testing.T) {
	texts := files(t)
	for name, text := range texts {
		if filepath.Ext(name) != ".md" {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			target := m[1]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			path, fragment, _ := strings.Cut(target, "#")
			file := name
			if path != "" {
				file = filepath.Join(filepath.Dir(name), path)
			}
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s: the link %s leads nowhere", name, target)
				continue
			}
			if fragment == "" || filepath.Ext(file) != ".md" {
				continue
			}
			var anchors []string
			for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(texts[file], ""), -1) {
				anchors = append(anchors, anchor(h[1]))
			}
			if !slices.Contains(anchors, fragment) {
				t.Errorf("%s: %s has no heading #%s", name, file, fragment)
			}
		}
	}
}

func TestDecisionsAreHeldByTests(t *testing.T) {
	texts := files(t)
	var code strings.Builder
	for name, text := range texts {
		if strings.HasSuffix(name, "_test.go") {
			code.WriteString(text)
		}
	}
	tests := code.String()
	found := 0
	for name, text := range texts {
		if filepath.Dir(name) != filepath.Join("shared", "adr") {
			continue
		}
		rows := held.FindAllStringSubmatch(text, -1)
		if len(rows) != 1 {
			t.Errorf("%s has %d rows \"Held by\", want 1", name, len(rows))
			continue
		}
		for _, m := range named.FindAllStringSubmatch(rows[0][1], -1) {
			found++
			if !strings.Contains(tests, "func "+m[1]+"(") {
				t.Errorf("%s names %s, which does not exist", name, m[1])
			}
		}
	}
	if found == 0 {
		t.Error("no decision record names a test")
	}
}

func TestRetiredWordsAreGone(t *testing.T) {
	texts := files(t)
	_, table, ok := strings.Cut(texts["CHANGELOG.md"], "| retired | now |\n|---|---|\n")
	if !ok {
		t.Fatal("CHANGELOG.md has no table of retired words")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var words []string
	for row := range strings.Lines(table) {
		retired, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for _, m := range quoted.FindAllStringSubmatch(retired, -1) {
			words = append(words, regexp.QuoteMeta(m[1]))
		}
	}
	if len(words) == 0 {
		t.Fatal("the table of retired words is empty")
	}
	retiredWord := regexp.MustCompile(`\b(?:` + strings.Join(words, "|") + `)\b`)
	for name, text := range texts {
		if name == "CHANGELOG.md" {
			continue
		}
		number := 0
		for line := range strings.Lines(text) {
			number++
			if m := retiredWord.FindString(line); m != "" {
				t.Errorf("%s:%d: %q is retired: CHANGELOG.md says what it is called now", name, number, m)
			}
		}
	}
}
