package browser

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"storefront.internal/deploy/local/process"
)

type chromium struct {
	process  *process.Process
	protocol *protocol
}

func startChromium(ctx context.Context, dir string) (Browser, error) {
	file := filepath.Join(dir, "DevToolsActivePort")
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	p, err := launch(dir, nil, "chromium", "--headless=new", "--no-sandbox", "--remote-debugging-port=0",
		"--user-data-dir="+dir, "--proxy-server="+nowhere, "--no-first-run", "--no-default-browser-check",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-gpu",
		"--disable-dev-shm-usage", "--disable-extensions", "--mute-audio",
		"--disable-search-engine-choice-screen",
		"--disable-features=Translate,OptimizationHints,MediaRouter,HttpsUpgrades",
		// Many pages are open at once and all count as being looked at.
		"--disable-background-timer-throttling", "--disable-renderer-backgrounding",
		"--disable-backgrounding-occluded-windows", "about:blank")
	if err != nil {
		return nil, err
	}
	text, err := awaitFile(ctx, file, p)
	if err != nil {
		p.Kill()
		return nil, err
	}
	port, path, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	c, err := dial(ctx, "ws://127.0.0.1:"+port+path)
	if err != nil {
		p.Kill()
		return nil, err
	}
	return &chromium{process: p, protocol: c}, nil
}

func (b *chromium) Kill() { b.process.Kill() }

func (b *chromium) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = b.protocol.call(ctx, "", "Browser.close", struct{}{}, nil) // it may end before it answers
	return b.process.Stop(syscall.SIGTERM, 10*time.Second)
}

func (b *chromium) Profile(ctx context.Context) (Profile, error) {
	var out struct {
		BrowserContextID string `json:"browserContextId"`
	}
	err := b.protocol.call(ctx, "", "Target.createBrowserContext", struct{}{}, &out)
	return &chromiumProfile{b.protocol, out.BrowserContextID}, err
}

// Persistent is the profile of a Chromium that outlives the browser: it is in the browser's folder.
func Persistent(b Browser) (Profile, error) {
	c, ok := b.(*chromium)
	if !ok {
		return nil, ErrUnsupported
	}
	return &chromiumProfile{c.protocol, ""}, nil
}

type chromiumProfile struct {
	protocol *protocol
	id       string
}

func (f *chromiumProfile) Close(ctx context.Context) error {
	if f.id == "" {
		return nil
	}
	return f.protocol.call(ctx, "", "Target.disposeBrowserContext",
		map[string]any{"browserContextId": f.id}, nil)
}

func (f *chromiumProfile) Open(ctx context.Context, url string) (Page, error) {
	p, err := f.blank(ctx)
	if err != nil {
		return nil, err
	}
	return p, p.Navigate(ctx, url)
}

func (f *chromiumProfile) blank(ctx context.Context) (*ChromiumPage, error) {
	params := map[string]any{"url": "about:blank"}
	if f.id != "" {
		params["browserContextId"] = f.id
	}
	var target struct {
		TargetID string `json:"targetId"`
	}
	if err := f.protocol.call(ctx, "", "Target.createTarget", params, &target); err != nil {
		return nil, err
	}
	var session struct {
		SessionID string `json:"sessionId"`
	}
	err := f.protocol.call(ctx, "", "Target.attachToTarget",
		map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	if err != nil {
		return nil, err
	}
	p := &ChromiumPage{protocol: f.protocol, target: target.TargetID, session: session.SessionID,
		loaded: make(chan struct{}, 1)}
	f.protocol.hear(p.session, p.hear)
	return p, p.Call(ctx, "Page.enable", struct{}{}, nil)
}

// ChromiumPage is a page of Chromium; it can be asked for more than other pages.
type ChromiumPage struct {
	protocol        *protocol
	target, session string
	loaded          chan struct{}

	mu     sync.Mutex
	events func(method string, params json.RawMessage)
}

func (p *ChromiumPage) hear(m message) {
	if m.Method == "Page.loadEventFired" {
		select {
		case p.loaded <- struct{}{}:
		default:
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.events != nil {
		p.events(m.Method, m.Params)
	}
}

// OnEvent calls f with each event of the page. It must not wait.
func (p *ChromiumPage) OnEvent(f func(method string, params json.RawMessage)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = f
}

// Call sends a command of the DevTools protocol to the page.
func (p *ChromiumPage) Call(ctx context.Context, method string, params, out any) error {
	return p.protocol.call(ctx, p.session, method, params, out)
}

// Navigate implements Page.
func (p *ChromiumPage) Navigate(ctx context.Context, url string) error {
	select {
	case <-p.loaded:
	default:
	}
	var out struct {
		ErrorText string `json:"errorText"`
	}
	if err := p.Call(ctx, "Page.navigate", map[string]any{"url": url}, &out); err != nil {
		return err
	}
	if out.ErrorText != "" {
		return fmt.Errorf("%s: %s", url, out.ErrorText)
	}
	return p.AwaitLoad(ctx)
}

// AwaitLoad waits until the next page is loaded.
func (p *ChromiumPage) AwaitLoad(ctx context.Context) error {
	select {
	case <-p.loaded:
		return nil
	case <-p.protocol.closed:
		return errors.New("the browser is gone")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Evaluate implements Page.
func (p *ChromiumPage) Evaluate(ctx context.Context, expression string, out any) error {
	var answer struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	err := p.Call(ctx, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true,
		"returnByValue": true, "userGesture": true}, &answer)
	if err != nil {
		return err
	}
	if e := answer.Exception; e != nil {
		return fmt.Errorf("script: %s %s", e.Text, e.Exception.Description)
	}
	if out == nil || answer.Result.Value == nil {
		return nil
	}
	return json.Unmarshal(answer.Result.Value, out)
}

// Screenshot returns a PNG of the viewport.
func (p *ChromiumPage) Screenshot(ctx context.Context) ([]byte, error) {
	var out struct {
		Data string `json:"data"`
	}
	if err := p.Call(ctx, "Page.captureScreenshot", map[string]any{"format": "png"}, &out); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(out.Data)
}

// Close implements Page.
func (p *ChromiumPage) Close(ctx context.Context) error {
	p.protocol.hear(p.session, nil)
	return p.protocol.call(ctx, "", "Target.closeTarget", map[string]any{"targetId": p.target}, nil)
}

// Crash implements Page.
func (p *ChromiumPage) Crash(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = p.Call(ctx, "Page.crash", struct{}{}, nil) // it never answers
	return nil
}
