// Package project finds the folders of a checkout (its root, the cache, the data of a running stack) and
// gives out ports of the loopback interface.
package project

import (
	"errors"
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
