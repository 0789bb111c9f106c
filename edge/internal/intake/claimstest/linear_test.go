package claimstest

import (
	"testing"
	"time"
)

func TestLinearizable(t *testing.T) {
	t.Parallel()
	call := func(begin, end int, w Word) Call {
		return Call{Begin: time.Unix(int64(begin), 0), End: time.Unix(int64(end), 0), Word: w}
	}
	for name, tc := range map[string]struct {
		calls            []Call
		want, whenForgot bool
	}{
		"nothing":             {nil, true, true},
		"one after the other": {[]Call{call(0, 1, Accepted), call(2, 3, Duplicate), call(4, 5, Duplicate)}, true, true},
		"at the same time, the duplicate ends first": {[]Call{call(0, 5, Accepted), call(1, 2, Duplicate)}, true, true},
		"a duplicate of nothing":                     {[]Call{call(0, 1, Duplicate)}, false, false},
		"a duplicate before the accepted began":      {[]Call{call(0, 1, Duplicate), call(2, 3, Accepted)}, false, false},
		"accepted twice":                             {[]Call{call(0, 1, Accepted), call(2, 3, Accepted)}, false, true},
		"accepted twice at the same time":            {[]Call{call(0, 3, Accepted), call(1, 2, Accepted)}, false, true},
		"a duplicate of what nobody saw":             {[]Call{call(0, 1, Unseen), call(2, 3, Duplicate)}, true, true},
		"a duplicate before what nobody saw":         {[]Call{call(0, 1, Duplicate), call(2, 3, Unseen)}, false, false},
		"unseen, lands late, accepted meanwhile":     {[]Call{call(0, 1, Unseen), call(2, 3, Accepted), call(4, 5, Duplicate)}, true, true},
		"unseen, duplicate, and then accepted":       {[]Call{call(0, 1, Unseen), call(2, 3, Duplicate), call(4, 5, Accepted)}, true, true},
		"an unseen one explains no second accepted":  {[]Call{call(0, 1, Accepted), call(2, 3, Unseen), call(4, 5, Accepted)}, false, true},
	} {
		if got := Linearizable(tc.calls, false); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
		if got := Linearizable(tc.calls, true); got != tc.whenForgot {
			t.Errorf("%s, forgetful: %t", name, got)
		}
	}
}
