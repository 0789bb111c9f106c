package bench

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// decodeLine is a line of `go test -bench Decode10 -benchmem`.
var decodeLine = regexp.MustCompile(
	`(?m)^BenchmarkDecode10\S*\s+\d+\s+(\d+(?:\.\d+)?) ns/op.*?(\d+) allocs/op`)

// BenchmarkDecode is the edge's own benchmark of decoding, validating and answering ten signals on one core:
// the best of ten runs, since other load on the machine can only add time.
func BenchmarkDecode(b *testing.B) {
	rows.begin(b)
	text, err := exec.Command("go", "test", "-run", "^$", "-bench", "Decode10", "-benchmem", "-cpu", "1",
		"-count", "10", "-benchtime", "0.3s",
		"storefront.internal/edge/internal/intake").CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %s", err, text)
	}
	best, allocations := 0.0, 0
	for _, found := range decodeLine.FindAllSubmatch(text, -1) {
		if took, err := strconv.ParseFloat(string(found[1]), 64); err == nil && (best == 0 || took < best) {
			best = took
			allocations, _ = strconv.Atoi(string(found[2]))
		}
	}
	if best == 0 {
		b.Fatalf("no figure in %s", text)
	}
	rows.goal("decode, validate and answer 10 signals",
		fmt.Sprintf("%.1f µs, %d allocations", best/1000, allocations), "", "", "≤ 12 µs, ≤ 10")
	b.ReportMetric(best, "ns/batch")
	b.ReportMetric(0, "ns/op")
}
