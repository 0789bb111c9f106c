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

// audit copies what is stored of a request (spec.md "Signal", rule 4). Header bytes may be anything; what is copied is
// UTF-8 without NUL, since PostgreSQL stores nothing else.
func (x *exchange) audit() signal.Audit {
	h := &x.ctx.Request.Header
	a := signal.Audit{
		UserAgent:      auditValue(h.UserAgent(), maxAuditValue),
		AcceptLanguage: auditValue(h.Peek(fasthttp.HeaderAcceptLanguage), maxAuditValue),
		Origin:         auditValue(h.Peek(fasthttp.HeaderOrigin), maxAuditValue),
		Referer:        auditValue(h.Peek(fasthttp.HeaderReferer), maxAuditReferer),
	}
	if x.client.IsValid() {
		a.IP = x.client.String()
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

// printable reports whether b is printable ASCII, as nearly every header is.
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

// crawler reports whether a User-Agent says of itself that it is no shopper. Its signals are taken and marked.
func crawler(userAgent string) bool {
	ua := strings.ToLower(userAgent)
	for _, mark := range []string{"bot", "crawl", "spider", "slurp", "headless", "lighthouse", "facebookexternalhit", "preview", "monitor"} {
		if strings.Contains(ua, mark) {
			return true
		}
	}
	return false
}
