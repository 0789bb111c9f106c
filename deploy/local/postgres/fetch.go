package postgres

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"

	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/local/project"
)

const (
	// RepositoryVariable names another Maven repository for the server's binaries than the library's own choice.
	RepositoryVariable = "POSTGRES_BINARIES_REPOSITORY"
	// UnpackCommand is the hidden command of this program that Fetch runs as an unprivileged user; see Unpack.
	UnpackCommand = "unpack-postgres"

	embeddedVersion = embeddedpostgres.V17
)

// Fetch answers a folder of server binaries below dir (which comes from Home) and downloads them when they are not there yet.
// The library that fetches them can only do so by starting a server, which PostgreSQL refuses to root; so this program runs
// itself again, as the server's user, to do that once.
func Fetch(ctx context.Context, dir string, log io.Writer) (bin string, err error) {
	bin = filepath.Join(dir, "server", "bin")
	if _, err := os.Stat(filepath.Join(dir, "complete")); err == nil && complete(bin) {
		return bin, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat("/proc/self/exe"); err == nil {
		self = "/proc/self/exe" // also where the other user cannot reach the file by its path
	}
	tail := &process.Tail{}
	p, err := process.Start(process.Spec{
		Name: "fetch PostgreSQL", Path: self, Args: []string{UnpackCommand, dir}, Dir: dir,
		Env: append(os.Environ(), "HOME="+dir), Log: tee(tail, log), User: process.Nobody(),
	})
	if err != nil {
		return "", err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Kill()
		return "", ctx.Err()
	}
	if p.Err() != nil {
		return "", fmt.Errorf("fetch the PostgreSQL binaries: %w\n%s", p.Err(), tail)
	}
	return bin, os.WriteFile(filepath.Join(dir, "complete"), []byte(embeddedVersion+"\n"), 0o644)
}

// Unpack downloads the binaries to dir/server and starts and stops them once, as proof that they run on this machine.
func Unpack(dir string) error {
	port, err := project.FreePort()
	if err != nil {
		return err
	}
	cfg := embeddedpostgres.DefaultConfig().Version(embeddedVersion).Port(uint32(port)).StartTimeout(time.Minute).
		CachePath(filepath.Join(dir, "archive")).BinariesPath(filepath.Join(dir, "server")).
		RuntimePath(filepath.Join(dir, "trial")).DataPath(filepath.Join(dir, "trial", "data")).Logger(os.Stderr)
	if url := os.Getenv(RepositoryVariable); url != "" {
		cfg = cfg.BinaryRepositoryURL(url)
	}
	server := embeddedpostgres.NewDatabase(cfg)
	if err := server.Start(); err != nil {
		return err
	}
	if err := server.Stop(); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(dir, "trial"))
}
