//go:build web

package browser

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// Each browser keeps a profile's storage from page to page, and profiles apart.
func TestProfilesAndPages(t *testing.T) {
	for _, name := range strings.Fields(os.Getenv("WEB_BROWSERS")) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
			defer cancel()
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				_, _ = w.Write([]byte("<!doctype html><title>page</title>"))
			}))
			defer site.Close()
			b, err := Start(ctx, name, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer b.Kill()
			for range 2 {
				readAndCount(ctx, t, b, site.URL)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// readAndCount makes a profile and opens two pages in it, one after the other.
func readAndCount(ctx context.Context, t *testing.T, b Browser, url string) {
	t.Helper()
	f, err := b.Profile(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for want := 1; want <= 2; want++ {
		p, err := f.Open(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		var got int
		err = p.Evaluate(ctx, "Promise.resolve(localStorage.n = Number(localStorage.n || 0) + 1)", &got)
		if err != nil || got != want {
			t.Errorf("count %d, %v, want %d", got, err, want)
		}
		if err := p.Evaluate(ctx, "Promise.reject(new Error('no'))", nil); err == nil {
			t.Error("a script that fails was taken")
		}
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	if err := f.Close(ctx); err != nil {
		t.Error(err)
	}
}
