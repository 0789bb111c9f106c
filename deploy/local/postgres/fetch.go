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
	// RepositoryVariable names another Maven repository for the server's binaries than the library's own
	// choice.
	RepositoryVariable = "POSTGRES_BINARIES_REPOSITORY"
	// UnpackCommand is the hidden command of this program that Fetch runs as an unprivileged user; see
	// Unpack.
	UnpackCommand = "unpack-postgres"

	embeddedVersion = embeddedpostgres.V17
)

// Fetch downloads server binaries to a folder (which comes from Home) unless it has them already. The library
// that downloads them can only do so by starting a server, and PostgreSQL does not run as root; so this
// program runs itself again as the server's user.
func Fetch(ctx context.Context, dir string, log io.Writer) (Binaries, error) {
	if b, done := Fetched(ctx, dir); done {
		return b, nil
	}
	self, err := os.Executable()
	if err != nil {
		return Binaries{}, err
	}
	if _, err := os.Stat("/proc/self/exe"); err == nil {
		self = "/proc/self/exe" // works where the other user cannot reach the file by its path
	}
	tail := &process.Tail{}
	p, err := process.Start(process.Spec{
		Name: "fetch PostgreSQL", Path: self, Args: []string{UnpackCommand, dir}, Dir: dir,
		Env: append(os.Environ(), "HOME="+dir), Log: tee(tail, log), User: process.Unprivileged(),
	})
	if err != nil {
		return Binaries{}, err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Kill()
		return Binaries{}, ctx.Err()
	}
	if p.Err() != nil {
		return Binaries{}, fmt.Errorf("fetch the PostgreSQL binaries: %w\n%s", p.Err(), tail)
	}
	if err := os.WriteFile(filepath.Join(dir, "complete"), []byte(embeddedVersion+"\n"), 0o644); err != nil {
		return Binaries{}, err
	}
	return binariesIn(ctx, filepath.Join(dir, "server", "bin"))
}

// Unpack downloads the binaries to dir/server and starts and stops them once, as proof that they run on this
// machine.
func Unpack(dir string) error {
	port, err := project.ClaimPort()
	if err != nil {
		return err
	}
	trial := filepath.Join(dir, "trial")
	cfg := embeddedpostgres.DefaultConfig().Version(embeddedVersion).Port(uint32(port)).Logger(os.Stderr).
		CachePath(filepath.Join(dir, "archive")).BinariesPath(filepath.Join(dir, "server")).
		RuntimePath(trial).DataPath(filepath.Join(trial, "data")).StartTimeout(time.Minute)
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
	return os.RemoveAll(trial)
}
