package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// cpuOf is the processor time that a process has used.
func cpuOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	fields, err := statOf(pid)
	check(b, err)
	var ticks time.Duration
	for _, field := range fields[11:13] { // in user and in system mode, in hundredths of a second
		n, err := strconv.Atoi(field)
		check(b, err)
		ticks += time.Duration(n)
	}
	return ticks * 10 * time.Millisecond
}

// statOf are the fields of /proc/<pid>/stat from the state on.
func statOf(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	// behind the name, which may hold spaces
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])), nil
}

// residentOf is the resident memory of a process in MiB.
func residentOf(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	check(b, err)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmRSS:" {
			kib, err := strconv.ParseFloat(fields[1], 64)
			check(b, err)
			return kib / 1024
		}
	}
	b.Fatalf("process %d has no VmRSS", pid)
	return 0
}

// redisPid asks the server for its process id.
func redisPid(b *testing.B, address string) int {
	b.Helper()
	client := redis.NewClient(&redis.Options{Addr: address})
	defer func() { _ = client.Close() }()
	text, err := client.Info(context.Background(), "server").Result()
	check(b, err)
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, "process_id:"); found {
			pid, err := strconv.Atoi(strings.TrimSpace(value))
			check(b, err)
			return pid
		}
	}
	b.Fatal("Redis does not say its process")
	return 0
}

// brokerPid finds the broker among the children of this process's ancestors.
func brokerPid(b *testing.B) int {
	b.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	check(b, err)
	family := ancestors(os.Getpid())
	for _, path := range found {
		line, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(line, []byte("kafka.Kafka")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		check(b, err)
		if fields, err := statOf(pid); err == nil && family[fields[1]] {
			return pid
		}
	}
	b.Fatal("no broker beside this program: use `make bench`")
	return 0
}

// ancestors are the processes that started this one; the broker is a child of one of them.
func ancestors(pid int) map[string]bool {
	family := map[string]bool{}
	for pid > 1 {
		fields, err := statOf(pid)
		if err != nil {
			break
		}
		family[fields[1]] = true
		pid, _ = strconv.Atoi(fields[1])
	}
	return family
}

// profile writes profiles of a service during the work to the folder BENCH_PROFILE, if that is set: its
// processor time, and what it has allocated since its start.
func profile(b *testing.B, n node, name string, work func()) {
	b.Helper()
	dir := os.Getenv("BENCH_PROFILE")
	if dir == "" {
		work()
		return
	}
	done := make(chan error, 1)
	go func() { done <- fetch(n, "profile?seconds=6", filepath.Join(dir, name+".pprof")) }()
	work()
	check(b, <-done)
	check(b, fetch(n, "allocs", filepath.Join(dir, name+"-allocs.pprof")))
}

// fetch writes one profile of a service to a file.
func fetch(n node, what, path string) error {
	res, err := http.Get("http://" + n.Admin + "/debug/pprof/" + what)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return errors.Join(err, os.WriteFile(path, text, 0o600))
}

// metric reads one sample from a service's metrics.
func metric(admin, name string) (float64, error) {
	res, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, name+" "); found {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, nil
}
