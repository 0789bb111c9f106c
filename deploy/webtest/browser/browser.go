package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"storefront.internal/deploy/local/process"
)

// Browser is a running browser.
type Browser interface {
	// Profile makes a profile with an empty storage, which lives until it is closed.
	Profile(ctx context.Context) (Profile, error)
	// Kill ends the browser at once (SIGKILL).
	Kill()
	// Close ends the browser in order.
	Close() error
}

// Profile is the storage of one shopper.
type Profile interface {
	// Open opens a page and waits until it is loaded.
	Open(ctx context.Context, url string) (Page, error)
	Close(ctx context.Context) error
}

// Page is a tab.
type Page interface {
	// Navigate goes to a URL and waits until it is loaded.
	Navigate(ctx context.Context, url string) error
	// Evaluate evaluates an expression, awaits the promise that it may be, and decodes its value into out,
	// which may be nil.
	Evaluate(ctx context.Context, expression string, out any) error
	// Close closes the tab as a person does.
	Close(ctx context.Context) error
	// Crash kills the process of the page. ErrUnsupported where that cannot be done.
	Crash(ctx context.Context) error
}

// ErrUnsupported says that this browser cannot do something.
var ErrUnsupported = errors.New("this browser cannot do that")

// The browsers by name.
const (
	Chromium = "chromium"
	Firefox  = "firefox"
	WebKit   = "webkit"
)

// Start starts a browser by name. Its data lives in dir, and stays there for the next start.
func Start(ctx context.Context, name, dir string) (Browser, error) {
	switch name {
	case Chromium:
		return startChromium(ctx, dir)
	case Firefox:
		return startFirefox(ctx, dir)
	case WebKit:
		return startWebKit(ctx, dir)
	}
	return nil, fmt.Errorf("browser %q is not known", name)
}

const startWithin = 60 * time.Second

// nowhere is where requests to other hosts than 127.0.0.1 go.
const nowhere = "127.0.0.1:9"

// launch starts a program with its log in dir.
func launch(dir string, env []string, program string, args ...string) (*process.Process, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, filepath.Base(program)+".log"),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own descriptor
	return process.Start(process.Spec{Name: program, Path: path, Args: args,
		Env: append(os.Environ(), env...), Log: log})
}

// awaitFile waits until a file has content and returns it.
func awaitFile(ctx context.Context, path string, p *process.Process) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
			return text, nil
		}
		select {
		case <-tick.C:
		case <-p.Done():
			return nil, fmt.Errorf("%s ended %s", p.Name(), p.Ending())
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: %w", path, ctx.Err())
		}
	}
}
