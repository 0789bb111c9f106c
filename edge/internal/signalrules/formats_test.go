package signalrules

import (
	"strings"
	"testing"
)

// webURLByParts is webURL step by step.
func webURLByParts(s string) bool {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return false
	}
	host := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host = rest[:i]
	}
	host = host[strings.LastIndexByte(host, '@')+1:]
	return host != "" && host[0] != ':' &&
		strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) < 0
}

// FuzzWebURL: webURL, in one pass, agrees with the steps.
func FuzzWebURL(f *testing.F) {
	for _, s := range []string{"", "http://", "https://a", "HTTPS://a@b/c", "http://@", "http://a@",
		"http://:80", "http://a:80/@", "ftp://a", "http:a", "a:b://c", "http://a b",
		"http://a\x7f", "http://u@v@w/?#", "https://ñ.example/é", "http:///x", "http://?a@b",
		"http://a\x1fb", "://", ":", "http:/a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := webURL(s), webURLByParts(s); got != want {
			t.Errorf("%q: %t", s, got)
		}
	})
}
