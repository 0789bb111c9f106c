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

// table collects what the benchmarks found, benchmark by benchmark.
type table struct {
	mu       sync.Mutex
	order    []string
	sections map[string]*section
}

// section is what one benchmark found: lines, and rows that are held against a goal.
type section struct {
	lines []string
	goals []string
}

var rows = table{sections: map[string]*section{}}

// begin says that what is found from now on is the benchmark's. They run one after the other.
func (t *table) begin(b *testing.B) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.section(b.Name())
}

// section makes a benchmark's section the last one. The mutex is held.
func (t *table) section(name string) *section {
	if len(t.order) == 0 || t.order[len(t.order)-1] != name {
		t.order = append(t.order, name)
	}
	if t.sections[name] == nil {
		t.sections[name] = &section{}
	}
	return t.sections[name]
}

// current is the section of the benchmark that runs. The mutex is held.
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

// goal adds a row that is held against a goal: ours, the limit that took turns with it, the ratio or figure, and what it should be.
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
