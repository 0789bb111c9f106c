package topology

import (
	"bytes"
	"fmt"
	"os"
)

// Stopped tells whether the unit's process stands still after SIGSTOP.
func (u *Unit) Stopped() bool {
	u.mu.Lock()
	p := u.process
	u.mu.Unlock()
	if p == nil {
		return false
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
	if err != nil {
		return false
	}
	// pid (name) state …; a name may hold spaces.
	i := bytes.LastIndexByte(text, ')')
	return i >= 0 && i+2 < len(text) && text[i+2] == 'T'
}

// Starts is how often the unit was started so far.
func (u *Unit) Starts() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.starts
}
