package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Markdown writes the report as the page that is committed.
func (r *Report) Markdown(w io.Writer) error {
	p := &page{w: w}
	f := r.Figures
	p.line("# The newest long fault run")
	p.line("")
	p.line("Made by `%s` (`faults run -markdown`); what is injected and checked is told in the packages below `deploy/faults`.", r.Reproducer)
	p.line("")
	p.line("| | |")
	p.line("|---|---|")
	p.line("| begun | %s, commit `%s` |", r.Begun.Format(time.RFC3339), r.Commit)
	p.line("| seed | %d |", r.Seed)
	p.line("| faults and load | %s (asked: %s); everything %s |", r.Loaded.Round(time.Second), r.Asked, r.Took.Round(time.Second))
	p.line("| signals | %d, sent as %d elements |", f.Signals, f.Elements)
	p.line("| stored, at the engine | %d, %d |", f.Stored, f.Delivered)
	p.line("| faults | %d |", r.Faults)
	p.line("| findings | %d |", len(r.Findings)+len(r.Crashes))
	p.line("")
	r.invariants(p)
	p.line("## Faults by kind")
	p.line("")
	p.line("| kind | what | injected |")
	p.line("|---|---|---|")
	for _, k := range slices.SortedFunc(maps.Keys(r.Injected), func(a, b string) int { return number(a) - number(b) }) {
		p.line("| %s | %s | %d |", k, meaning(k), r.Injected[k])
	}
	p.line("")
	if len(r.Falls) > 0 {
		p.line("%d times a process ended by itself and was started again: %s.", len(r.Falls), falls(r.Falls))
		p.line("")
	}
	r.outcomes(p)
	p.line("## Recovery")
	p.line("")
	p.line("| from the heal of the last fault | n | p50 | p90 | p99 | max |")
	p.line("|---|---|---|---|---|---|")
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
	p.line("| until a fresh signal was accepted by both edges and had reached the engine | %d | %s | %s | %s | %s |", r.Recovery.Count,
		round(r.Recovery.P50), round(r.Recovery.P90), round(r.Recovery.P99), round(r.Recovery.Max))
	p.line("| until every edge took a batch of a client's | %d | %.2fs | %.2fs | %.2fs | %.2fs |", f.Recovery.Count, f.Recovery.P50, f.Recovery.P90,
		f.Recovery.P99, f.Recovery.Max)
	p.line("")
	p.line("After the last client everything was at rest within %s.", f.Drain.Round(100*time.Millisecond))
	return p.err
}

// page writes lines and keeps the first error.
type page struct {
	w   io.Writer
	err error
}

func (p *page) line(format string, args ...any) {
	if _, err := fmt.Fprintf(p.w, format+"\n", args...); err != nil && p.err == nil {
		p.err = err
	}
}

func (r *Report) invariants(p *page) {
	p.line("## Invariants")
	p.line("")
	p.line("| | broken when there are | found |")
	p.line("|---|---|---|")
	for _, i := range Invariants() {
		n := 0
		for _, f := range r.Findings {
			if f.Invariant == i[0] {
				n += f.Count
			}
		}
		found := fmt.Sprint(n)
		if i[0] == "S2" && r.RedisFaults {
			found = fmt.Sprintf("not judged: Redis failed too; %d ids were accepted once more and counted once", r.Figures.ExtraAccepted)
		}
		p.line("| %s | %s | %s |", i[0], i[1], found)
	}
	p.line("")
	for _, f := range r.Findings {
		p.line("- **%s** %s: %d, %s", f.Invariant, f.Detail, f.Count, strings.Join(f.IDs, ", "))
	}
	for _, c := range r.Crashes {
		p.line("- **crash** %s", c)
	}
	if r.Failed() {
		p.line("")
	}
}

func (r *Report) outcomes(p *page) {
	f := r.Figures
	p.line("## Operations by outcome")
	p.line("")
	p.line("`ok` was answered by a 2xx, `fail` certainly did nothing (4xx, refused connections), `info` may have done anything (no answer, 5xx).")
	p.line("")
	p.line("| operation | ok | fail | info |")
	p.line("|---|---|---|---|")
	for _, op := range slices.Sorted(maps.Keys(f.Calls)) {
		by := f.Calls[op]
		p.line("| %s | %d | %d | %d |", op, by["ok"], by["fail"], by["info"])
	}
	p.line("")
	p.line("Elements of operation 1: %d accepted, %d duplicate, %d rejected. %d elements lie twice in Kafka and %d reached the engine twice; all were counted once. "+
		"%d deliveries died of answers that the nemesis made up, and were replayed.", f.Accepted, f.Duplicate, total(f.Rejected), f.Reproduced, f.Redelivered, r.Replayed)
	if len(f.StoredAfter) > 0 {
		p.line("")
		p.line("Never answered by a 202 and stored all the same, once, by how the first try ended:")
		p.line("")
		for _, cause := range slices.Sorted(maps.Keys(f.StoredAfter)) {
			p.line("- %s: %d", cause, f.StoredAfter[cause])
		}
	}
	p.line("")
}

func falls(all []Fall) string {
	by := map[string]int{}
	for _, f := range all {
		by[f.Process]++
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, fmt.Sprintf("%s %d", name, by[name]))
	}
	return strings.Join(out, ", ")
}

func meaning(kind string) string {
	switch kind {
	case "N1":
		return "kill -9 of an edge, a relay, control, the broker, PostgreSQL or Redis"
	case "N2":
		return "SIGSTOP of any process, for up to 45 s"
	case "N3":
		return "slow, narrow or sliced links"
	case "N4":
		return "partitions: links that let nothing pass, or refuse"
	case "N5":
		return "connections reset, or cut within a message"
	case "N6":
		return "lost answers: the request arrives, the reply does not"
	case "N7":
		return "full disk of PostgreSQL or Kafka"
	case "N8":
		return "Redis flushed, full, paused, replaced by an empty one"
	case "N9":
		return "PostgreSQL restarted, sessions ended, locks held, rows refused"
	case "N10":
		return "Kafka restarted, its topic's settings changed, the group's offsets set back"
	case "N11":
		return "rebalance storms: relays leave and come back"
	case "N12":
		return "the engine refuses, hangs, answers nonsense or half"
	case "N13":
		return "an edge whose clock is up to an hour wrong"
	case "N14":
		return "the provider throttles, fails, hangs, answers nonsense"
	case "N15":
		return "rude clients: slow, smuggling, forged"
	}
	return ""
}
