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
	os.Exit(code)
}

// table collects what the benchmarks found.
type table struct {
	mu   sync.Mutex
	text strings.Builder
}

var rows table

func (t *table) add(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(&t.text, format+"\n", args...)
}

func (t *table) print() {
	if t.text.Len() > 0 {
		fmt.Fprintf(os.Stdout, "\n%s\n", t.text.String())
	}
}
