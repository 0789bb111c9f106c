package deadline

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestIsAContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // a goroutine left behind would fail the bubble
		type name struct{}
		for how, want := range map[string]error{"deadline": context.DeadlineExceeded,
			"server": context.Canceled, "ended": context.Canceled} {
			for _, waited := range []bool{false, true} {
				base, stop := context.WithCancel(context.WithValue(context.Background(), name{}, how))
				c := New(base, time.Now().Add(time.Second))
				if c.Err() != nil || c.Value(name{}) != how {
					t.Errorf("%s: %v before its end", how, c.Err())
				}
				child, cancel := context.WithCancel(context.Background())
				if waited {
					child, cancel = context.WithTimeout(c, time.Minute)
					if d, ok := c.Deadline(); !ok || child.Err() != nil || c.Value(name{}) != how ||
						child.Value(name{}) != how || time.Until(d) != time.Second {
						t.Errorf("%s: child %v", how, child.Err())
					}
				}
				switch how {
				case "deadline":
					time.Sleep(time.Second)
				case "server":
					stop()
				case "ended":
					c.End()
				}
				synctest.Wait()
				if !errors.Is(c.Err(), want) || waited && !errors.Is(child.Err(), want) {
					t.Errorf("%s, waited %t: %v, child %v", how, waited, c.Err(), child.Err())
				}
				<-c.Done()
				cancel()
				c.End()
				stop()
			}
		}
	})
}

// TestNested: an inner Context ends by its own deadline or its parent's, whichever is first, and with their
// root.
func TestNested(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base, stop := context.WithCancel(t.Context())
		outer := New(base, time.Now().Add(2*time.Second))
		inner, late := New(outer, time.Now().Add(time.Second)), New(outer, time.Now().Add(time.Minute))
		if at, _ := late.Deadline(); time.Until(at) != 2*time.Second {
			t.Errorf("it ends after its parent: %v", time.Until(at))
		}
		<-inner.Done()
		if !errors.Is(inner.Err(), context.DeadlineExceeded) || outer.Err() != nil || late.Err() != nil {
			t.Errorf("%v, %v, %v", inner.Err(), outer.Err(), late.Err())
		}
		stop()
		<-late.Done()
		if !errors.Is(late.Err(), context.Canceled) || !errors.Is(outer.Err(), context.Canceled) {
			t.Errorf("%v, %v", late.Err(), outer.Err())
		}
		inner.End()
		late.End()
		outer.End()
	})
}
