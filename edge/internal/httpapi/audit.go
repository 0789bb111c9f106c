package httpapi

import (
	"strings"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"storefront.internal/shared/signal"
)

// The greatest lengths of stored header values, in bytes.
const (
	maxAuditValue   = 512
	maxAuditReferer = 2048
)

// audit copies what is stored of a request with its signals. Header bytes may be anything; the copies are
// UTF-8 without NUL, because PostgreSQL stores nothing else.
func (rc *requestContext) audit() signal.Audit {
	h := &rc.ctx.Request.Header
	a := signal.Audit{
		UserAgent:      auditValue(h.UserAgent(), maxAuditValue),
		AcceptLanguage: auditValue(h.Peek(fasthttp.HeaderAcceptLanguage), maxAuditValue),
		Origin:         auditValue(h.Peek(fasthttp.HeaderOrigin), maxAuditValue),
		Referer:        auditValue(h.Peek(fasthttp.HeaderReferer), maxAuditReferer),
	}
	if rc.client.IsValid() {
		a.IP = rc.client.String()
	}
	a.Crawler = crawler(a.UserAgent)
	return a
}

// auditValue copies b, cut to at most limit bytes and to whole characters.
func auditValue(b []byte, limit int) string {
	if len(b) > limit {
		b = b[:limit]
		for len(b) > 0 && limit-len(b) < utf8.UTFMax-1 && !endsWhole(b) {
			b = b[:len(b)-1]
		}
	}
	if printable(b) {
		return string(b)
	}
	s := strings.ToValidUTF8(string(b), "\ufffd")
	s = strings.ReplaceAll(s, "\x00", "")
	for len(s) > limit { // a replacement is longer than what it replaces
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}

// printable reports whether b is printable ASCII, as nearly every header value is.
func printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// endsWhole reports whether b does not end within a character.
func endsWhole(b []byte) bool {
	r, size := utf8.DecodeLastRune(b)
	return r != utf8.RuneError || size != 1
}

// crawler reports whether a User-Agent identifies itself as a program. Its signals are recorded and marked.
func crawler(userAgent string) bool {
	ua := strings.ToLower(userAgent)
	for _, word := range []string{"bot", "crawl", "spider", "slurp", "headless", "lighthouse",
		"facebookexternalhit",
		"preview", "monitor"} {
		if strings.Contains(ua, word) {
			return true
		}
	}
	return false
}
