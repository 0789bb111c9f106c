package systemtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// cell is one dependency that fails in one way, and what the operations answer then. An operation that is not
// named answers as usual.
type cell struct {
	dependency string
	fault      string
	wants      []want
	short      bool // it is run with MATRIX=short
}

// want is the answer of some operations.
type want struct {
	operations []string
	words      []string // one of them
	within     time.Duration
}

// usualWithin is the time in which the operations that need nothing of the dependency answer.
const usualWithin = time.Second

// The faults, by the names that the page has.
const (
	refuses = "refuses connections"
	killed  = "is killed"
	hangs   = "hangs"
	slow    = "answers 1 s late"
	cuts    = "cuts its answers"
	cold    = "hangs, and Redis has lost its claims"
)

// failureMatrix is what is decided. deploy/runbooks/failure-matrix.md shows it with what was measured.
func failureMatrix() []cell {
	const (
		known    = 500 * time.Millisecond // what must fail fails within it
		patience = 4 * time.Second        // the deadline of a request
	)
	recording := []string{opNew, opOld}
	catalog := []string{opDeliver, opInstall, opKey, opQueue, opWebhook}
	unavailable := want{recording, []string{"503"}, known}
	keys := want{[]string{opKey}, []string{"201"}, time.Second}
	fallback := want{[]string{opAdvice}, []string{"200 fallback"}, known}
	noStore := []want{{catalog, []string{"503"}, known},
		{[]string{opUnread}, []string{"200", "503"}, known}, {recording, []string{"202"}, known}}
	var all []cell
	each := func(dependency string, wants func(fault string) []want) {
		for _, f := range []string{refuses, killed, hangs, slow, cuts} {
			all = append(all, cell{dependency, f, wants(f), false})
		}
	}
	each("redis", func(string) []want { return []want{unavailable, keys} })
	each("kafka", func(fault string) []want {
		if fault == slow {
			return []want{{recording, []string{"202", "503"}, patience}}
		}
		return []want{unavailable}
	})
	each("postgres", func(fault string) []want {
		if fault == slow { // every statement of an operation waits
			late := want{catalog, []string{"200", "201", "202", "503"}, 20 * time.Second}
			return []want{late, noStore[1], {recording, []string{"202", "503"}, patience},
				{[]string{opAdvice, opItem}, []string{"200", "200 engine", "503"}, patience}}
		}
		return noStore
	})
	all = append(all, cell{"postgres", cold, []want{unavailable, noStore[0], noStore[1]}, true})
	each("engine", func(string) []want { return []want{fallback} })
	each("provider", func(string) []want { return nil })
	for i, c := range all {
		all[i].short = c.short || c.fault == hangs && c.dependency == "redis"
	}
	return all
}

// wantsOf completes the wants of a cell by that of the other operations.
func (c cell) wantsOf() []want {
	var others []string
	for _, o := range operations() {
		named := func(w want) bool { return slices.Contains(w.operations, o.name) }
		if !slices.ContainsFunc(c.wants, named) {
			others = append(others, o.name)
		}
	}
	if len(others) == 0 {
		return c.wants
	}
	return append(slices.Clone(c.wants), want{others, nil, usualWithin})
}

// allows reports whether an operation may answer the word.
func (w want) allows(o operation, word string) bool {
	return slices.Contains(w.words, word) || w.words == nil && word == o.usual
}

// decided is the part of a row of the page that the table decides.
func (c cell) decided(w want) string {
	operations, words := strings.Join(w.operations, "; "), strings.Join(w.words, " or ")
	if w.words == nil {
		words = "as usual"
		if len(c.wants) > 0 {
			operations = "all others"
		} else {
			operations = "all"
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s, %d ms |", c.dependency, c.fault, operations, words,
		w.within.Milliseconds())
}

const matrixPage = "deploy/runbooks/failure-matrix.md"

const matrixHead = `# Failure matrix

What each operation answers while one dependency fails, how soon, and how long recovery takes. The
operations have the numbers of the [README](../../README.md#operations). The first four columns are
decided in deploy/systemtest/matrix_table_test.go, and the others are measured: "make matrix" runs all
cells and writes this page, and "make soak" runs them too. The faults happen one at a time to a whole
deployment (one edge, control and relay, default timeouts) while every operation is called.

- *answer*: one of these words, in this time for 99 of 100 answers. Counted are requests from seven
  seconds after the beginning of the fault on; until then it is known.
- *measured*: the answers, their median and 99th percentile.
- *before*: the slowest answer to a request from the first seven seconds.
- *back*: the time from the end of the fault to the first usual answer.
- *queue*: the time from then on until everything accepted is stored and delivered.

The rules behind the table:

- A look-up that only chooses a word never delays recording by more than 300 ms, and never fails it
  while Redis remembers.
- What must fail fails within 500 ms once the dependency is known to fail.
- What does not need the dependency answers as usual: no worker, connection or permit that others
  need waits for it.

## One broker of three is out of reach

Its packets are lost, as when its machine is. Records that were with it go to another leader after 250
ms: recording goes on with 202, the longest answer took 0.28 s, and accepted signals a second stay at 71
% in the first second and at 90 % or more from the second one on. E1 and 2 answer as usual. Every few
seconds one record, the probe, waits 250 ms. Measured 2026-11-22 by TestOneBrokerOfThreeIsBlackHoled,
which "make soak" runs.

## One dependency fails

A PostgreSQL that answers 1 s late fails some requests of shoppers only while storefront keys are issued
or revoked, which the test does without a pause: the edge uses no key before it knows that it was not
revoked, and learns that late. For the same reason, a PostgreSQL that hangs in the second or two between
the change of a key and its copy in Redis makes edges answer 503 until it goes on.

`

const matrixColumns = `| dependency | it … | operations | answer | measured | before | back | queue |
|---|---|---|---|---|---|---|---|
`

// The page has every row of the table, in its order, each with what was measured.
func TestFailureMatrixIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(shared.project.Root, matrixPage))
	check(t, err)
	_, table, found := strings.Cut(string(text), matrixColumns)
	if !found || !strings.HasPrefix(string(text), matrixHead) {
		t.Fatalf("%s differs from what `make matrix` writes", matrixPage)
	}
	rows := strings.Split(strings.TrimSpace(table), "\n")
	for _, c := range failureMatrix() {
		for _, w := range c.wantsOf() {
			if len(rows) == 0 || !strings.HasPrefix(rows[0], c.decided(w)) ||
				strings.Count(rows[0], "|") != 9 {
				t.Fatalf("%s lacks the row %s: run `make matrix`", matrixPage, c.decided(w))
			}
			rows = rows[1:]
		}
	}
	if len(rows) > 0 {
		t.Errorf("%s has more rows: %s", matrixPage, rows[0])
	}
}
