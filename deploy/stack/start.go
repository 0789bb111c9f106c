package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/stack/client"
)

// Start runs one of the binaries with the given environment beside what every program needs.
func (s Settings) Start(name string, env []string, log io.Writer) (*process.Process, error) {
	return process.Start(process.Spec{
		Name: name, Path: filepath.Join(s.Bin, name), Env: append(PlainEnv(os.Environ()), env...), Log: log,
		Death: syscall.SIGTERM,
	})
}

// Once runs a command of control (`migrate up`, `keyset new`) to its end and returns what it printed.
func (s Settings) Once(ctx context.Context, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.Bin, "control"), args...)
	cmd.Env = append(PlainEnv(os.Environ()), env...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("control %s: %w\n%s%s", strings.Join(args, " "), err, &out, &problems)
	}
	return out.Bytes(), nil
}

// PlainEnv is an environment without the services' variables: a service refuses a variable with its prefix
// that it does not know.
func PlainEnv(environ []string) []string {
	var plain []string
	for _, v := range environ {
		if !strings.HasPrefix(v, "EDGE_") && !strings.HasPrefix(v, "CONTROL_") &&
			!strings.HasPrefix(v, "RELAY_") {
			plain = append(plain, v)
		}
	}
	return plain
}

// Prepare makes the keyset, the database and the login roles where they are missing, and migrates the
// database to the newest schema by the real command.
func (s Settings) Prepare(ctx context.Context) error {
	if err := EnsureDatabase(ctx, s.Database); err != nil {
		return err
	}
	if err := s.ensureKeyset(ctx); err != nil {
		return err
	}
	if _, err := s.Once(ctx, s.Migrate(), "migrate", "up"); err != nil {
		return err
	}
	return EnsureLogins(ctx, s.Database, s.RolePassword)
}

// ensureKeyset makes the file with the keyset that seals control's secrets. An existing file stays: without
// it, all that is sealed is lost.
func (s Settings) ensureKeyset(ctx context.Context) error {
	if _, err := os.Stat(s.KeysetFile); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	keyset, err := s.Once(ctx, nil, "keyset", "new")
	if err != nil {
		return err
	}
	return os.WriteFile(s.KeysetFile, keyset, 0o600)
}

// Ready waits until a process reports at its operations port that it is ready.
func Ready(ctx context.Context, p *process.Process, admin string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return p.WaitReady(ctx,
		func(ctx context.Context) error { return Probe(ctx, "http://"+admin+"/readyz?verbose") })
}

// Probe makes one GET request and wants a 200 within two seconds.
func Probe(ctx context.Context, url string) error {
	r := client.Do(ctx, nil, client.Request{Method: http.MethodGet, URL: url, Timeout: 2 * time.Second})
	if r.Err == nil && r.Status != http.StatusOK {
		return &client.StatusError{Status: r.Status, Body: string(r.Body)}
	}
	return r.Err
}
