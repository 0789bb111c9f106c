package httpapi

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestCallIsAContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // a goroutine left behind would fail the bubble
		type name struct{}
		for how, want := range map[string]error{"deadline": context.DeadlineExceeded, "server": context.Canceled, "answered": context.Canceled} {
			for _, waited := range []bool{false, true} {
				base, stop := context.WithCancel(context.WithValue(context.Background(), name{}, how))
				c := &call{base: base, deadline: time.Now().Add(time.Second)}
				if c.Err() != nil || c.Value(name{}) != how {
					t.Errorf("%s: %v before its end", how, c.Err())
				}
				child, cancel := context.WithCancel(context.Background())
				if waited {
					child, cancel = context.WithTimeout(c, time.Minute)
					if d, ok := c.Deadline(); !ok || child.Err() != nil || c.Value(name{}) != how || child.Value(name{}) != how || time.Until(d) != time.Second {
						t.Errorf("%s: child %v", how, child.Err())
					}
				}
				switch how {
				case "deadline":
					time.Sleep(time.Second)
				case "server":
					stop()
				case "answered":
					c.end()
				}
				synctest.Wait()
				if !errors.Is(c.Err(), want) || waited && !errors.Is(child.Err(), want) {
					t.Errorf("%s, waited %t: %v, child %v", how, waited, c.Err(), child.Err())
				}
				<-c.Done()
				cancel()
				c.end()
				stop()
			}
		}
	})
}
