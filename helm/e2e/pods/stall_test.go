package pods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// stalled is how late the ticker must be for a stall of the machine.
const stalled = 200 * time.Millisecond

// watchGroup is the variable with the control group of a ticker: this program again, with the share of the
// CPUs that a pod of the trial has. On a busy machine, pods wait longer than the processes beside them.
const watchGroup = "K8S_E2E_WATCH"

// watch returns how late the ticker was at most until ctx ended.
func watch(ctx context.Context) (worst time.Duration, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self)
	group, err := podGroup()
	if err != nil {
		return 0, err
	}
	cmd.Env = append(os.Environ(), watchGroup+"="+group)
	stop, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	context.AfterFunc(ctx, func() { _ = stop.Close() })
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("ticker: %w\n%s", err, out)
	}
	return time.ParseDuration(string(out))
}

// podGroup makes a group among those of the pods on node 0, under either version of control groups.
func podGroup() (string, error) {
	root, share, value := "/sys/fs/cgroup/cpu", "cpu.shares", "51"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		root, share, value = "/sys/fs/cgroup", "cpu.weight", "2"
	}
	group := filepath.Join(root, "storefront-e2e-0/kubepods/burstable/watch")
	return group, errors.Join(os.MkdirAll(group, 0o755),
		os.WriteFile(filepath.Join(group, share), []byte(value), 0o600))
}

// tick joins the group, ticks every 10 ms until its standard input ends, and prints how late it was at most.
func tick(group string) error {
	pid := []byte(strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), pid, 0o600); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	const every = 10 * time.Millisecond
	worst := time.Duration(0)
	for last := time.Now(); ; {
		select {
		case <-ended:
			_, err := strings.NewReader(worst.String()).WriteTo(os.Stdout)
			return err
		case <-time.After(every):
		}
		now := time.Now()
		worst = max(worst, now.Sub(last)-every)
		last = now
	}
}
