package trail

import (
	"fmt"
	"testing"
	"time"
)

// A signal counts when the engine created it, once; what nobody will count is told apart.
func TestCount(t *testing.T) {
	t.Parallel()
	tr := New()
	at := time.Unix(1, 0)
	tr.Minted(Signal{SignalID: "sig_a", Type: "click"}, true)
	tr.Sent(Signal{SignalID: "sig_b", Type: "dismiss"},
		Attempt{Outcome: "rejected", Reason: "unknown_decision"})
	tr.Minted(Signal{SignalID: "sig_c"}, false)
	tr.Received("sig_a", "created", at, &Line{Quantity: 2, Revision: 1})
	tr.Received("sig_a", "exists", at, nil)
	tr.Received("sig_c", "created", at, nil)
	tr.Received("sig_c", "created", at, nil)
	tr.Received("sig_of_another_client", "created", at, nil)
	rows, version, count, _ := tr.Since(0)
	if want := (Count{Minted: 3, Counted: 2, Doubled: 1, Refused: 1}); count != want || len(rows) != 3 {
		t.Errorf("count %+v of %d rows, want %+v", count, len(rows), want)
	}
	if r := rows[0]; !r.Stored || r.Created != 1 || r.Exists != 1 || r.Line.Quantity != 2 ||
		r.Type != "click" {
		t.Errorf("row %+v", r)
	}
	tr.Removed("sig_a")
	tr.Removed("sig_unknown")
	if rows, _, _, _ := tr.Since(version); len(rows) != 1 || !rows[0].Removed {
		t.Errorf("changed rows %+v", rows)
	}
}

// The oldest rows are dropped and still count.
func TestOldRowsAreDropped(t *testing.T) {
	t.Parallel()
	tr := New()
	for i := range maxRows + 5 {
		id := fmt.Sprint("sig_", i)
		tr.Minted(Signal{SignalID: id}, true)
		tr.Received(id, "created", time.Unix(1, 0), nil)
	}
	rows, _, count, _ := tr.Since(0)
	if len(rows) != maxRows || count.Minted != maxRows+5 || count.Counted != maxRows+5 {
		t.Errorf("%d rows, count %+v", len(rows), count)
	}
}
