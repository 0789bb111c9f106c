// Package project knows where things of a checkout lie: its root, what is cached, what a running stack keeps; and which ports
// are free. It creates no file of its own accord.
package project

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
)

// Project is a checkout.
type Project struct{ Root string }

// Find walks up from the working directory to the folder that holds go.work.
func Find() (Project, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Project{}, err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return Project{Root: dir}, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return Project{}, errors.New("no go.work in this folder or above it: start from the checkout")
		}
		dir = up
	}
}

// Bin holds the built binaries.
func (p Project) Bin() string { return filepath.Join(p.Root, "bin") }

// Cache holds what was fetched and can be fetched again.
func (p Project) Cache() string { return filepath.Join(p.Root, ".cache") }

// Run holds what a stack keeps between runs, and its logs.
func (p Project) Run() string { return filepath.Join(p.Root, ".run") }

// FreePort finds a port of the loopback interface that nobody listens on, below those that the system gives to outgoing
// connections: one of these would be taken again before it is used.
func FreePort() (int, error) {
	const first, last, tries = 15_000, 32_000, 100
	var err error
	for range tries {
		port := first + rand.IntN(last-first)
		var l net.Listener
		if l, err = net.Listen("tcp", Loopback(port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, err
}

// Loopback is the address of a local port.
func Loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
