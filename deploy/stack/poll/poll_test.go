package poll

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestUntil(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		missing, calls := errors.New("not there"), 0
		err := Until(t.Context(), "the row", func() error {
			if calls++; calls < 3 {
				return missing
			}
			return nil
		})
		if err != nil || calls != 3 {
			t.Errorf("%d calls, %v", calls, err)
		}
		err = Within(t.Context(), time.Second, "the row", func() error { return missing })
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, missing) ||
			!strings.Contains(err.Error(), "the row") {
			t.Errorf("error %v", err)
		}
		begun := time.Now()
		err = Until(t.Context(), "the row", func() error { return Permanent(missing) })
		if !errors.Is(err, missing) || time.Since(begun) > 0 {
			t.Errorf("a permanent error: %v after %s", err, time.Since(begun))
		}
	})
}
