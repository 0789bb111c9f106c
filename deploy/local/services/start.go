package services

import (
	"bytes"
	"context"
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
)

// Start runs one of the binaries with the given environment (beside what every program needs).
func (s Settings) Start(name string, env []string, log io.Writer) (*process.Process, error) {
	return process.Start(process.Spec{
		Name: name, Path: filepath.Join(s.Bin, name), Env: append(Plain(os.Environ()), env...), Log: log, Death: syscall.SIGTERM,
	})
}

// Once runs a command of control (`migrate up`, `keyset new`) to its end and answers what it printed.
func (s Settings) Once(ctx context.Context, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.Bin, "control"), args...)
	cmd.Env = append(Plain(os.Environ()), env...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("control %s: %w\n%s%s", strings.Join(args, " "), err, &out, &problems)
	}
	return out.Bytes(), nil
}

// Plain is an environment without the services' own variables, which refuse what they do not know.
func Plain(environ []string) []string {
	var plain []string
	for _, v := range environ {
		if !strings.HasPrefix(v, "EDGE_") && !strings.HasPrefix(v, "CONTROL_") && !strings.HasPrefix(v, "RELAY_") {
			plain = append(plain, v)
		}
	}
	return plain
}

// Ready waits until the process says so at its operations port.
func Ready(ctx context.Context, p *process.Process, admin string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return p.WaitReady(ctx, func(ctx context.Context) error { return Answers(ctx, "http://"+admin+"/readyz?verbose", 2*time.Second) })
}

// Answers asks once and wants a 200 in that time; the error tells what was said instead.
func Answers(ctx context.Context, url string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, 4<<10))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", res.Status, bytes.TrimSpace(text))
	}
	return nil
}
