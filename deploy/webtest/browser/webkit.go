package browser

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/deploy/stack/poll"
)

// webkit is a set of WebKitWebDrivers. A driver has one session at a time, and a session is a browser with an
// empty profile: profiles that are open at the same time have a driver each.
type webkit struct {
	dir, binary string
	mu          sync.Mutex
	drivers     []*webkitDriver
}

type webkitDriver struct {
	process *process.Process
	url     string
	taken   bool // by a session
}

func startWebKit(ctx context.Context, dir string) (Browser, error) {
	found, err := filepath.Glob("/usr/lib/*/webkit2gtk-4.1/MiniBrowser")
	if err != nil || len(found) == 0 {
		return nil, errors.Join(err, errors.New("MiniBrowser is missing: install webkit2gtk-driver"))
	}
	b := &webkit{dir: dir, binary: found[0]}
	d, err := b.take(ctx)
	if err != nil {
		return nil, err
	}
	b.release(d)
	return b, nil
}

// take returns a driver without a session and starts one if there is none. Drivers start one after the other:
// each looks for a free display.
func (b *webkit) take(ctx context.Context) (*webkitDriver, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.drivers {
		if !d.taken {
			d.taken = true
			return d, nil
		}
	}
	d, err := b.start(ctx)
	if err != nil {
		return nil, err
	}
	d.taken = true
	b.drivers = append(b.drivers, d)
	return d, nil
}

func (b *webkit) release(d *webkitDriver) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d.taken = false
}

func (b *webkit) start(ctx context.Context) (*webkitDriver, error) {
	port, err := project.ClaimPort()
	if err != nil {
		return nil, err
	}
	env := []string{"http_proxy=http://" + nowhere, "https_proxy=http://" + nowhere, "no_proxy=127.0.0.1",
		"HOME=" + b.dir, "XDG_CACHE_HOME=" + b.dir, "GIO_USE_VFS=local", "NO_AT_BRIDGE=1",
		"LIBGL_ALWAYS_SOFTWARE=1", "WEBKIT_DISABLE_COMPOSITING_MODE=1"}
	p, err := launch(b.dir, env, "xvfb-run", "-a", "WebKitWebDriver", "--host=127.0.0.1",
		"--port="+strconv.Itoa(port))
	if err != nil {
		return nil, err
	}
	d := &webkitDriver{process: p, url: "http://" + project.Loopback(port)}
	err = poll.Within(ctx, startWithin, "WebKitWebDriver", func() error {
		return client.Do(ctx, nil, client.Request{Method: http.MethodGet, URL: d.url + "/status"}).Err
	})
	if err != nil {
		p.Kill()
		return nil, err
	}
	return d, nil
}

// Kill ends the drivers, and so their displays and browsers.
func (b *webkit) Kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.drivers {
		_ = syscall.Kill(-d.process.Pid(), syscall.SIGKILL) // it may have ended
		<-d.process.Done()
	}
	b.drivers = nil
}

func (b *webkit) Close() (err error) {
	b.mu.Lock()
	for _, d := range b.drivers {
		_ = syscall.Kill(-d.process.Pid(), syscall.SIGTERM) // it may have ended
		err = errors.Join(err, d.process.Stop(syscall.SIGTERM, 10*time.Second))
	}
	b.mu.Unlock()
	b.Kill()
	return err
}

func (b *webkit) Profile(ctx context.Context) (Profile, error) {
	d, err := b.take(ctx)
	if err != nil {
		return nil, err
	}
	f := &webkitProfile{webdriver: webdriver{url: d.url}, end: func() { b.release(d) }}
	var session struct {
		SessionID string `json:"sessionId"`
	}
	err = f.call(ctx, http.MethodPost, "/session", map[string]any{"capabilities": map[string]any{
		"alwaysMatch": map[string]any{"webkitgtk:browserOptions": map[string]any{"binary": b.binary,
			"args": []string{"--automation"}}}}}, &session)
	if err != nil {
		f.end()
		return nil, err
	}
	f.url += "/session/" + session.SessionID
	if err := f.call(ctx, http.MethodGet, "/window", nil, &f.first); err != nil {
		return nil, errors.Join(err, f.Close(ctx))
	}
	return f, nil
}

// webdriver calls the commands below a URL.
type webdriver struct{ url string }

func (d webdriver) call(ctx context.Context, method, path string, in, out any) error {
	var answer struct {
		Value json.RawMessage `json:"value"`
	}
	err := client.Call(ctx, nil, client.Request{Method: method, URL: d.url + path, Body: in}, &answer)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(answer.Value, out)
}

// webkitProfile is a session. Its first window stays empty: a session ends with its last window.
type webkitProfile struct {
	webdriver
	first string // window
	end   func() // gives the driver back
}

func (f *webkitProfile) Close(ctx context.Context) error {
	defer f.end()
	return f.call(ctx, http.MethodDelete, "", nil, nil)
}

// Open opens a tab from the first window: the one that was used last may be closed.
func (f *webkitProfile) Open(ctx context.Context, url string) (Page, error) {
	first := webkitPage{f.webdriver, f.first}
	if err := first.focus(ctx); err != nil {
		return nil, err
	}
	var window struct {
		Handle string `json:"handle"`
	}
	err := f.call(ctx, http.MethodPost, "/window/new", map[string]any{"type": "tab"}, &window)
	if err != nil {
		return nil, err
	}
	p := &webkitPage{f.webdriver, window.Handle}
	return p, p.Navigate(ctx, url)
}

type webkitPage struct {
	webdriver
	window string
}

// focus makes the page the one to which commands go.
func (p *webkitPage) focus(ctx context.Context) error {
	return p.call(ctx, http.MethodPost, "/window", map[string]any{"handle": p.window}, nil)
}

func (p *webkitPage) Navigate(ctx context.Context, url string) error {
	if err := p.focus(ctx); err != nil {
		return err
	}
	return p.call(ctx, http.MethodPost, "/url", map[string]any{"url": url}, nil)
}

func (p *webkitPage) Evaluate(ctx context.Context, expression string, out any) error {
	if err := p.focus(ctx); err != nil {
		return err
	}
	var answer struct {
		Value json.RawMessage `json:"value"`
		Error string          `json:"error"`
	}
	err := p.call(ctx, http.MethodPost, "/execute/async", map[string]any{"args": []any{},
		"script": "const done = arguments[arguments.length - 1]; (async () => (" + expression + "))().then(" +
			"(v) => done({value: v === undefined ? null : v}), (e) => done({error: String(e)}))"}, &answer)
	if err == nil && answer.Error != "" {
		err = errors.New("script: " + answer.Error)
	}
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(answer.Value, out)
}

func (p *webkitPage) Close(ctx context.Context) error {
	if err := p.focus(ctx); err != nil {
		return err
	}
	return p.call(ctx, http.MethodDelete, "/window", nil, nil)
}

func (p *webkitPage) Crash(context.Context) error { return ErrUnsupported }
