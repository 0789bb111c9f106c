package rfc3339

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestAppendIsAppendFormat compares with the standard library on instants of all kinds.
func TestAppendIsAppendFormat(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	instants := []time.Time{{}, time.Unix(0, 0), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2024, 2, 29, 1, 2, 3, 100_000_000, time.FixedZone("", 3600)),
		time.Date(2026, 11, 21, 0, 0, 0, 999, time.UTC)}
	for range 10_000 {
		nanos := r.Int64N(1_000_000) * int64([]int{1, 1000, 100_000}[r.IntN(3)]) % 1e9
		instants = append(instants, time.Unix(r.Int64N(4_000_000_000), nanos))
	}
	for _, at := range instants {
		if got, want := string(Append(nil, at)), at.UTC().Format("2006-01-02T15:04:05.999999Z"); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
}

// TestParseIsStrict: time.Parse accepts more than Parse does, and never less.
func TestParseIsStrict(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"2026-11-21T10:00:00Z", "2026-11-21T10:00:00.5+23:59",
		"2000-02-29T23:59:59.000001-12:34",
		"2026-11-21T10:00:00." + strings.Repeat("9", 40) + "Z"} {
		want, err := time.Parse(time.RFC3339Nano, s)
		if got, ok := Parse(s); err != nil || !ok || !got.Equal(want.Truncate(time.Microsecond)) {
			t.Errorf("%s: %v, %v", s, got, want)
		}
	}
	for _, s := range []string{"", "2026-11-21T10:00:00", "2026-11-21T10:00:00,5Z", "2026-11-21T10:00:00.Z",
		"2026-11-21T10:00:00+24:00", "2026-11-21T10:00:00+03:60", "2026-11-21t10:00:00Z",
		"2026-11-21T1:00:00Z"} {
		if got, ok := Parse(s); ok {
			t.Errorf("%s is read as %v", s, got)
		}
	}
}
