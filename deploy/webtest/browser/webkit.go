package browser

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/deploy/stack/poll"
)

// webkit is a WebKitWebDriver. It has one session at a time, and a session is a browser with an empty
// profile.
type webkit struct {
	driver *process.Process
	url    string
	binary string
}

func startWebKit(ctx context.Context, dir string) (Browser, error) {
	found, err := filepath.Glob("/usr/lib/*/webkit2gtk-4.1/MiniBrowser")
	if err != nil || len(found) == 0 {
		return nil, errors.Join(err, errors.New("MiniBrowser is missing: install webkit2gtk-driver"))
	}
	port, err := project.ClaimPort()
	if err != nil {
		return nil, err
	}
	env := []string{"http_proxy=http://" + nowhere, "https_proxy=http://" + nowhere, "no_proxy=127.0.0.1",
		"HOME=" + dir, "XDG_CACHE_HOME=" + dir, "GIO_USE_VFS=local", "NO_AT_BRIDGE=1",
		"LIBGL_ALWAYS_SOFTWARE=1", "WEBKIT_DISABLE_COMPOSITING_MODE=1"}
	p, err := launch(dir, env, "xvfb-run", "-a", "WebKitWebDriver", "--host=127.0.0.1",
		"--port="+strconv.Itoa(port))
	if err != nil {
		return nil, err
	}
	b := &webkit{driver: p, url: "http://" + project.Loopback(port), binary: found[0]}
	err = poll.Within(ctx, startWithin, "WebKitWebDriver", func() error {
		return client.Do(ctx, nil, client.Request{Method: http.MethodGet, URL: b.url + "/status"}).Err
	})
	if err != nil {
		p.Kill()
		return nil, err
	}
	return b, nil
}

// Kill ends the driver, and so its display and the browser.
func (b *webkit) Kill() {
	_ = syscall.Kill(-b.driver.Pid(), syscall.SIGKILL) // it may have ended
	<-b.driver.Done()
}

func (b *webkit) Close() error {
	_ = syscall.Kill(-b.driver.Pid(), syscall.SIGTERM) // it may have ended
	err := b.driver.Stop(syscall.SIGTERM, 10*time.Second)
	b.Kill()
	return err
}

func (b *webkit) Profile(ctx context.Context) (Profile, error) {
	f := &webkitProfile{webdriver: webdriver{url: b.url}}
	var session struct {
		SessionID string `json:"sessionId"`
	}
	err := f.call(ctx, http.MethodPost, "/session", map[string]any{"capabilities": map[string]any{
		"alwaysMatch": map[string]any{"webkitgtk:browserOptions": map[string]any{"binary": b.binary,
			"args": []string{"--automation"}}}}}, &session)
	f.url += "/session/" + session.SessionID
	return f, err
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
type webkitProfile struct{ webdriver }

func (f *webkitProfile) Close(ctx context.Context) error {
	return f.call(ctx, http.MethodDelete, "", nil, nil)
}

func (f *webkitProfile) Open(ctx context.Context, url string) (Page, error) {
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
