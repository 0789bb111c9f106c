package postgres

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/local/project"
)

// dataOf makes a folder that looks like the data of a version.
func dataOf(t *testing.T, folder, version string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "PG_VERSION"), []byte(version+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Data keeps being used by a server that can read it; where there is none, the note says what happened and
// what to do.
func TestServerIsChosenByItsData(t *testing.T) {
	t.Parallel()
	f := func(installed []int, data map[string]string, want int, notes ...string) {
		t.Helper()
		dir := t.TempDir()
		for folder, version := range data {
			dataOf(t, filepath.Join(dir, folder), version)
		}
		var servers []Binaries
		for _, major := range installed {
			servers = append(servers, Binaries{Major: major})
		}
		chosen, note := Choose(servers, dir)
		if chosen.Major != want || (note != "") != (len(notes) > 0) {
			t.Errorf("servers %v, data %v: chosen %d, %q", installed, data, chosen.Major, note)
		}
		for _, part := range notes {
			if !strings.Contains(note, part) {
				t.Errorf("%q is not in %q", part, note)
			}
		}
	}
	f([]int{15, 17}, nil, 15)
	f([]int{15, 17}, map[string]string{"data-17": "17"}, 17)
	f([]int{15, 17}, map[string]string{"data": "17"}, 17)
	f([]int{15, 17}, map[string]string{"data-15": "15", "data-17": "17"}, 15)
	f([]int{15}, map[string]string{"data-17": "17"}, 15, "PostgreSQL 17", "PostgreSQL 15", "data-17")
	f([]int{15}, map[string]string{"data": "9.6"}, 15, "PostgreSQL 9 ")
	f([]int{15}, map[string]string{"data": ""}, 15)
}

// A server starts beside data of another version, which stays, and finds its own again.
func TestStartBesideDataOfAnotherVersion(t *testing.T) {
	t.Parallel()
	servers := Installed(t.Context())
	if len(servers) == 0 {
		if os.Getenv("REQUIRE_REAL") == "1" {
			t.Fatal("no PostgreSQL is installed")
		}
		t.Skip("SKIPPED: no PostgreSQL is installed")
	}
	// the test's own folder cannot be entered by the server's user
	parent, err := os.MkdirTemp("", "storefront-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(parent) })
	if err := os.Chmod(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := Home(filepath.Join(parent, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	dataOf(t, filepath.Join(dir, "data"), "99")
	port, err := project.ClaimPort()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for range 2 {
		server, err := Start(ctx, Config{Binaries: servers[0], Dir: dir, Port: port})
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if got, want := dataVersions(dir), []int{99, servers[0].Major}; !slices.Equal(got, want) {
			t.Errorf("data of %v, want %v", got, want)
		}
	}
}
