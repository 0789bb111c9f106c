package httpapi

import (
	"bytes"
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
// UTF-8 without NUL, because PostgreSQL stores nothing else. All of them are parts of one string, which is
// built in buf; audit returns buf for the next request.
func (rc *requestContext) audit(buf []byte) (signal.Audit, []byte) {
	h := &rc.ctx.Request.Header
	var ends [4]int
	buf = buf[:0]
	for i, value := range [...][]byte{h.UserAgent(), h.Peek(fasthttp.HeaderAcceptLanguage),
		h.Peek(fasthttp.HeaderOrigin), h.Peek(fasthttp.HeaderReferer)} {
		limit := maxAuditValue
		if i == 3 {
			limit = maxAuditReferer
		}
		buf = appendAuditValue(buf, value, limit)
		ends[i] = len(buf)
	}
	if rc.client.IsValid() {
		buf = rc.client.AppendTo(buf)
	}
	all := string(buf)
	return signal.Audit{
		UserAgent: all[:ends[0]], AcceptLanguage: all[ends[0]:ends[1]], Origin: all[ends[1]:ends[2]],
		Referer: all[ends[2]:ends[3]], IP: all[ends[3]:], Crawler: crawler(buf[:ends[0]]),
	}, buf
}

// appendAuditValue appends b, cut to at most limit bytes and to whole characters.
func appendAuditValue(dst, b []byte, limit int) []byte {
	if len(b) > limit {
		b = b[:limit]
		for len(b) > 0 && limit-len(b) < utf8.UTFMax-1 && !endsWhole(b) {
			b = b[:len(b)-1]
		}
	}
	if printable(b) {
		return append(dst, b...)
	}
	s := strings.ToValidUTF8(string(b), "\ufffd")
	s = strings.ReplaceAll(s, "\x00", "")
	for len(s) > limit { // a replacement is longer than what it replaces
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return append(dst, s...)
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
func crawler(userAgent []byte) bool {
	var buf [maxAuditValue]byte
	lower := buf[:copy(buf[:], userAgent)]
	for i, c := range lower {
		if c >= 'A' && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	for _, word := range [...]string{"bot", "crawl", "spider", "slurp", "headless", "lighthouse",
		"facebookexternalhit", "preview", "monitor"} {
		if bytes.Contains(lower, []byte(word)) {
			return true
		}
	}
	return false
}
