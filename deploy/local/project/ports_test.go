package project

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// Many processes draw thousands of ports at the same time, and no port is given out twice. The children are
// this test again.
func TestPortsAreGivenOutOnce(t *testing.T) {
	const processes, draws = 12, 300
	if os.Getenv("PORTS_TEST_CHILD") == "1" {
		for range draws {
			port, err := ClaimPort()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(os.Stderr, "port=%d\n", port)
		}
		return
	}
	t.Setenv("TMPDIR", t.TempDir())
	outputs := make([]bytes.Buffer, processes)
	var all sync.WaitGroup
	for i := range outputs {
		all.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestPortsAreGivenOutOnce$")
			cmd.Env = append(os.Environ(), "PORTS_TEST_CHILD=1")
			cmd.Stderr = &outputs[i]
			if err := cmd.Run(); err != nil {
				t.Errorf("child %d: %v\n%s", i, err, &outputs[i])
			}
		})
	}
	all.Wait()
	seen := map[string]bool{}
	for i := range outputs {
		for line := range strings.Lines(outputs[i].String()) {
			if port, found := strings.CutPrefix(line, "port="); found && seen[port] {
				t.Errorf("port %s was given out twice", port)
			} else if found {
				seen[port] = true
			}
		}
	}
	if len(seen) != processes*draws {
		t.Errorf("%d different ports, want %d", len(seen), processes*draws)
	}
}

// A port stays claimed while its process lives, whether or not something listens; the port of a dead process
// is reused in the end, and a port on which another program listens is left out.
func TestClaims(t *testing.T) {
	t.Parallel()
	const ports = lastPort - firstPort + 1
	claims := make([]byte, claimsSize)
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	for range ports {
		port, err := claim(claims, dead.Process.Pid)
		if err != nil {
			break // some are in use
		}
		if port < firstPort || port > lastPort {
			t.Fatalf("port %d", port)
		}
		if port == lastPort {
			break
		}
	}
	first, err := claim(claims, os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", Loopback(first+1))
	if err == nil {
		defer l.Close()
		if next, err := claim(claims, os.Getpid()); err != nil || next <= first+1 {
			t.Errorf("port %d beside a listener at %d: %v", next, first+1, err)
		}
	}
	for range ports - 1 {
		if port, err := claim(claims, os.Getpid()); err != nil {
			return
		} else if port == first {
			t.Fatalf("port %d of a living process was given out again", port)
		}
	}
	t.Error("more ports were given out than there are")
}
