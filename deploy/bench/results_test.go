package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

const resultsHead = `# Results

Written by ` + "`make bench`" + `;
each benchmark that runs replaces its own section, and the others stay. The figures of
one machine say little: what counts is the ratio between cases that took turns in one run. The load generator
and all services share the machine.
`

const goalsHead = `
| what | ours | limit | ratio or figure | goal |
|---|---|---|---|---|
`

// keep writes the results to a file and keeps the sections of benchmarks that did not run.
func (t *table) keep(path string) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	all := parseResults(string(old))
	for _, name := range t.order {
		all[name] = t.sections[name].markdown(name, provenance())
	}
	var out strings.Builder
	out.WriteString(resultsHead)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out.WriteString("\n" + strings.TrimSpace(all[name]) + "\n")
	}
	return os.WriteFile(path, []byte(out.String()), 0o644)
}

// parseResults splits a file of results into its sections.
func parseResults(text string) map[string]string {
	all := map[string]string{}
	_, rest, found := strings.Cut(text, "\n## ")
	for found {
		var one string
		one, rest, found = strings.Cut(rest, "\n## ")
		name, _, _ := strings.Cut(one, "\n")
		all[name] = "## " + one
	}
	return all
}

func (s *section) markdown(name, provenance string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "## %s\n\n%s\n", name, provenance)
	if len(s.goals) > 0 {
		out.WriteString(goalsHead + strings.Join(s.goals, "\n") + "\n")
	}
	if len(s.lines) > 0 {
		out.WriteString("\n```\n" + strings.Join(s.lines, "\n") + "\n```\n")
	}
	return out.String()
}

// provenance is the date, the commit and the machine.
func provenance() string {
	commit := "no commit"
	if text, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=10",
		"--exclude=*").Output(); err == nil {
		commit = "commit " + string(bytes.TrimSpace(text))
	}
	machine := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, rest, _ := strings.Cut(string(text), "model name")
		line, _, _ := strings.Cut(rest, "\n")
		machine = strings.Trim(line, "\t :")
	}
	return fmt.Sprintf("%s, %s; %s, %d cores, %s", time.Now().UTC().Format("2006-01-02 15:04 UTC"), commit,
		machine, runtime.NumCPU(), runtime.Version())
}

// TestResultsKeepWhatDidNotRun: a benchmark replaces its own section only.
func TestResultsKeepWhatDidNotRun(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/RESULTS.md"
	for _, run := range []map[string]string{{"BenchmarkA": "a, first", "BenchmarkB": "b, first"},
		{"BenchmarkB": "b, second"}} {
		found := table{sections: map[string]*section{}}
		for name, line := range run {
			found.section(name).lines = []string{line}
		}
		if err := found.keep(path); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := parseResults(string(text))
	if len(all) != 2 || !strings.Contains(all["BenchmarkA"], "a, first") ||
		!strings.Contains(all["BenchmarkB"], "b, second") || strings.Contains(string(text), "b, first") {
		t.Errorf("%s", text)
	}
}
