package bench

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"storefront.internal/deploy/bench/limit"
)

func TestMain(m *testing.M) {
	if named, err := limit.Main(); named {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	rows.print()
	if path := os.Getenv("BENCH_RESULTS"); path != "" && code == 0 {
		if err := rows.keep(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// table collects the results of all benchmarks.
type table struct {
	mu       sync.Mutex
	order    []string
	sections map[string]*section
}

// section are the results of one benchmark: lines, and rows that are compared with a goal.
type section struct {
	lines []string
	goals []string
}

var rows = table{sections: map[string]*section{}}

// begin makes a benchmark the one that results belong to. Benchmarks run one after the other.
func (t *table) begin(b *testing.B) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.section(b.Name())
}

// section makes a benchmark's section the last one. The caller holds the mutex.
func (t *table) section(name string) *section {
	if len(t.order) == 0 || t.order[len(t.order)-1] != name {
		t.order = append(t.order, name)
	}
	if t.sections[name] == nil {
		t.sections[name] = &section{}
	}
	return t.sections[name]
}

// current is the section of the running benchmark. The caller holds the mutex.
func (t *table) current() *section {
	if len(t.order) == 0 {
		return t.section("Benchmarks")
	}
	return t.section(t.order[len(t.order)-1])
}

func (t *table) add(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.current()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// goal adds a row that is compared with a goal: our figure, that of the limit, the ratio, and the goal.
func (t *table) goal(what, ours, limit, figure, goal string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.current()
	s.goals = append(s.goals, "| "+strings.Join([]string{what, ours, limit, figure, goal}, " | ")+" |")
}

func (t *table) print() {
	for _, name := range t.order {
		for _, line := range append(t.sections[name].lines, t.sections[name].goals...) {
			fmt.Fprintln(os.Stdout, line)
		}
	}
}
