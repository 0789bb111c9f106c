package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const pidFile = "postmaster.pid"

// clearStale handles the pid file of an earlier server. A server that still runs on this data is stopped; the
// caller has made sure that no other stack uses the folder. The file of a dead server is removed: its process
// id may belong to another process by now, and then PostgreSQL would not start.
func clearStale(data string) error {
	path := filepath.Join(data, pidFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err == nil && serves(pid, data) {
		return stopOrphan(pid, data)
	}
	return os.Remove(path)
}

func serves(pid int, data string) bool {
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		// The process is gone; or there is no /proc here, and any living process with this id is taken for
		// the server.
		_, linux := os.Stat("/proc/self/cmdline")
		return linux != nil && syscall.Kill(pid, 0) == nil
	}
	return strings.Contains(string(cmdline), data)
}

func stopOrphan(pid int, data string) error {
	if err := syscall.Kill(pid, syscall.SIGINT); err != nil {
		return fmt.Errorf("stop the PostgreSQL server %d that an earlier run left: %w", pid, err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		if !serves(pid, data) {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("the PostgreSQL server %d of an earlier run does not stop", pid)
}
