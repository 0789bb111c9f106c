package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"storefront.internal/deploy/local/process"
)

type firefox struct {
	process  *process.Process
	protocol *protocol
}

// preferences keep Firefox from asking other hosts and from throttling pages that nobody looks at.
const preferences = `
user_pref("network.proxy.type", 1);
user_pref("network.proxy.http", "127.0.0.1");
user_pref("network.proxy.http_port", 9);
user_pref("network.proxy.ssl", "127.0.0.1");
user_pref("network.proxy.ssl_port", 9);
user_pref("network.proxy.no_proxies_on", "127.0.0.1");
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("app.update.enabled", false);
user_pref("toolkit.telemetry.enabled", false);
user_pref("services.settings.server", "data:,#remote-settings-dummy/v1");
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("dom.min_background_timeout_value", 4);
`

func startFirefox(ctx context.Context, dir string) (Browser, error) {
	file := filepath.Join(dir, "WebDriverBiDiServer.json")
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "user.js"), []byte(preferences), 0o600); err != nil {
		return nil, err
	}
	p, err := launch(dir, []string{"HOME=" + dir, "MOZ_CRASHREPORTER_DISABLE=1"}, "firefox-esr", "--headless",
		"--no-remote", "--profile", dir, "--remote-debugging-port=0", "about:blank")
	if err != nil {
		return nil, err
	}
	b := &firefox{process: p}
	if err := b.connect(ctx, file); err != nil {
		p.Kill()
		return nil, err
	}
	return b, nil
}

func (b *firefox) connect(ctx context.Context, file string) error {
	text, err := awaitFile(ctx, file, b.process)
	if err != nil {
		return err
	}
	var server struct {
		Host string `json:"ws_host"`
		Port int    `json:"ws_port"`
	}
	if err := json.Unmarshal(text, &server); err != nil {
		return err
	}
	if b.protocol, err = dial(ctx, fmt.Sprintf("ws://%s:%d/session", server.Host, server.Port)); err != nil {
		return err
	}
	return b.protocol.call(ctx, "", "session.new", map[string]any{"capabilities": struct{}{}}, nil)
}

func (b *firefox) Kill() { b.process.Kill() }

func (b *firefox) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = b.protocol.call(ctx, "", "browser.close", struct{}{}, nil) // it may end before it answers
	return b.process.Stop(syscall.SIGTERM, 10*time.Second)
}

func (b *firefox) Profile(ctx context.Context) (Profile, error) {
	var out struct {
		UserContext string `json:"userContext"`
	}
	err := b.protocol.call(ctx, "", "browser.createUserContext", struct{}{}, &out)
	return &firefoxProfile{b.protocol, out.UserContext}, err
}

type firefoxProfile struct {
	protocol *protocol
	id       string
}

func (f *firefoxProfile) Close(ctx context.Context) error {
	return f.protocol.call(ctx, "", "browser.removeUserContext", map[string]any{"userContext": f.id}, nil)
}

func (f *firefoxProfile) Open(ctx context.Context, url string) (Page, error) {
	var out struct {
		Context string `json:"context"`
	}
	err := f.protocol.call(ctx, "", "browsingContext.create",
		map[string]any{"type": "tab", "userContext": f.id, "background": true}, &out)
	if err != nil {
		return nil, err
	}
	p := &firefoxPage{f.protocol, out.Context}
	return p, p.Navigate(ctx, url)
}

type firefoxPage struct {
	protocol *protocol
	id       string
}

func (p *firefoxPage) Navigate(ctx context.Context, url string) error {
	return p.protocol.call(ctx, "", "browsingContext.navigate",
		map[string]any{"context": p.id, "url": url, "wait": "complete"}, nil)
}

// Evaluate passes values as JSON text, since the protocol has an encoding of its own.
func (p *firefoxPage) Evaluate(ctx context.Context, expression string, out any) error {
	var answer struct {
		Type   string `json:"type"`
		Result struct {
			Value string `json:"value"`
		} `json:"result"`
		Exception struct {
			Text string `json:"text"`
		} `json:"exceptionDetails"`
	}
	err := p.protocol.call(ctx, "", "script.evaluate", map[string]any{
		"expression": "(async () => { const v = await (" + expression +
			"); return JSON.stringify(v === undefined ? null : v) })()",
		"awaitPromise": true, "target": map[string]any{"context": p.id}, "userActivation": true,
	}, &answer)
	if err != nil {
		return err
	}
	if answer.Type == "exception" {
		return errors.New("script: " + answer.Exception.Text)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal([]byte(answer.Result.Value), out)
}

func (p *firefoxPage) Close(ctx context.Context) error {
	return p.protocol.call(ctx, "", "browsingContext.close", map[string]any{"context": p.id}, nil)
}

func (p *firefoxPage) Crash(context.Context) error { return ErrUnsupported }
