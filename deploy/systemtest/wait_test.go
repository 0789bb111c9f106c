package systemtest

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"
)

// eventually asks until the answer is nil and fails the test when that takes too long.
func eventually(t *testing.T, within time.Duration, what string, ask func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, within, err)
		}
		<-tick.C
	}
}

// stopped tells whether a process stands still after SIGSTOP.
func (n *node) stopped() error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.Pid()))
	if err != nil {
		return err
	}
	// pid (name) state …; a name may hold spaces.
	i := bytes.LastIndexByte(text, ')')
	if i < 0 || i+2 >= len(text) || text[i+2] != 'T' {
		return fmt.Errorf("the process is not stopped: %.40s", text)
	}
	return nil
}

// dead tells whether a process has ended.
func (n *node) dead() error {
	if n.Running() {
		return fmt.Errorf("process %d runs", n.Pid())
	}
	return nil
}
