package consume

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestOffsetsNeverPassWhatIsNotStored: spans finish in any order, and commits fail now and then.
func TestOffsetsNeverPassWhatIsNotStored(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := newOffsets()
		var taken []*span
		stored := map[*span]bool{}
		next := map[place]int64{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "take") {
				p := place{"t", rapid.IntRange(0, 2).Draw(t, "partition")}
				next[p] += int64(rapid.IntRange(1, 3).Draw(t, "records"))
				taken = append(taken, o.take(p, next[p], time.Unix(next[p], 0)))
			} else if len(taken) > 0 {
				s := rapid.SampledFrom(taken).Draw(t, "finished")
				stored[s] = true
				o.finish([]*span{s})
			}
			due := o.due()
			for _, s := range taken {
				if to := due["t"][s.place.partition]; !stored[s] && to >= s.next {
					t.Fatalf("partition %d may be committed to %d, and %d is not stored", s.place.partition, to, s.next)
				}
			}
			if rapid.Bool().Draw(t, "commit succeeds") {
				o.committed(due)
			}
		}
		for _, s := range taken {
			o.finish([]*span{s})
		}
		for p, to := range next {
			if due, open := o.due()["t"][p.partition], o.open[p]; len(open) > 0 || due != 0 && due != to {
				t.Fatalf("at the end partition %d is at %d of %d with %d open", p.partition, due, to, len(open))
			}
		}
	})
}

func TestACommitThatIsOvertakenIsNotForgotten(t *testing.T) {
	t.Parallel()
	o := newOffsets()
	p := place{"t", 0}
	a, b := o.take(p, 5, time.Unix(1, 0)), o.take(p, 9, time.Unix(2, 0))
	if got := o.oldest(); !got.Equal(time.Unix(1, 0)) {
		t.Errorf("oldest %v", got)
	}
	o.finish([]*span{a})
	first := o.due()
	o.finish([]*span{b})
	o.committed(first)
	if due, want := o.due(), map[string]map[int]int64{"t": {0: 9}}; !reflect.DeepEqual(due, want) {
		t.Errorf("due %v, want %v", due, want)
	}
	if !o.oldest().IsZero() {
		t.Errorf("oldest %v", o.oldest())
	}
}
