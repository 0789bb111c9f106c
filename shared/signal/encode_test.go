package signal

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"
)

// TestAppendTimeIsAppendFormat compares with the standard library on instants of all kinds.
func TestAppendTimeIsAppendFormat(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	instants := []time.Time{{}, time.Unix(0, 0), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2024, 2, 29, 1, 2, 3, 100_000_000, time.FixedZone("", 3600)), time.Date(2026, 11, 21, 0, 0, 0, 999, time.UTC)}
	for range 10_000 {
		instants = append(instants, time.Unix(r.Int64N(4_000_000_000), r.Int64N(1_000_000)*int64([]int{1, 1000, 100_000}[r.IntN(3)])%1e9))
	}
	for _, at := range instants {
		if got, want := string(AppendTime(nil, at)), at.UTC().Format("2006-01-02T15:04:05.999999Z"); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
}

// TestAppendString: what is written is read back, whatever it is.
func TestAppendString(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "plain", "a\"b", `back\slash`, "line\nend", "\x00\x1f", "\x7f", "ñandú", "日本", "end\\", "\"", " "} {
		var got string
		if err := json.Unmarshal(appendString(nil, s), &got); err != nil || got != s {
			t.Errorf("%q: %q, %v", s, got, err)
		}
	}
	if got := string(appendString(nil, "a\xffb")); got != "\"a\ufffdb\"" {
		t.Errorf("broken UTF-8: %q", got)
	}
}
