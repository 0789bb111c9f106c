// Package project knows where things of a checkout lie: its root, what is cached, what a running stack keeps; and which ports
// are free. It creates no file of its own accord.
package project

import (
	"errors"
	"fmt"
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

// FreePort asks the operating system for a port of the loopback interface that nobody listens on.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Loopback is the address of a local port.
func Loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
