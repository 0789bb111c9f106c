package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"storefront.internal/edge/internal/itemread"
	"storefront.internal/edge/internal/overload"
	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/fault"
)

const itemPath = "/v1/catalog/items/itm_lhto54sgatsoe2dof4gv046logsm653b"

// items is a fake of package itemread.
type items struct {
	mu   sync.Mutex
	docs map[itemread.Key]*itemread.Document
	err  error
	hold chan struct{}
	got  []itemread.Request
}

func (i *items) Read(_ context.Context, req itemread.Request) (*itemread.Document, error) {
	i.mu.Lock()
	i.got = append(i.got, req)
	doc, err, hold := i.docs[itemread.Key{Connection: req.ConnectionID, Item: req.ItemID}], i.err, i.hold
	i.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if err != nil {
		return nil, err
	}
	if doc == nil {
		return nil, fault.New(fault.NotFound, "There is nothing at this path.")
	}
	return doc, nil
}

func goldenItem(t testing.TB) []byte {
	t.Helper()
	body, err := os.ReadFile("../../../shared/catalog/testdata/item.golden.json")
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// catalog starts a server with the golden item of con_mine.
func catalog(t *testing.T, change ...func(*Config)) (*harness, []byte) {
	t.Helper()
	h, body := start(t, change...), goldenItem(t)
	key := itemread.Key{Connection: "con_mine", Item: "itm_lhto54sgatsoe2dof4gv046logsm653b"}
	h.items.docs[key] = itemread.NewDocument(key.Item, itemread.Version{Revision: 9, Body: body})
	return h, body
}

func (h *harness) get(path, secret string, lines ...string) string {
	return h.request("GET", path, secret, lines...)
}

func (h *harness) request(method, path, secret string, lines ...string) string {
	head := method + " " + path + " HTTP/1.1\r\nHost: edge.example\r\n"
	if secret != "" {
		head += "Authorization: Bearer " + secret + "\r\n"
	}
	for _, line := range lines {
		head += line + "\r\n"
	}
	return head + "\r\n"
}

const (
	plainTag = `"itm_lhto54sgatsoe2dof4gv046logsm653b.9"`
	gzipTag  = `"itm_lhto54sgatsoe2dof4gv046logsm653b.9-gzip"`
)

// The golden body of an item has every field; expect checks it against the document.
func TestItem(t *testing.T) {
	t.Parallel()
	h, body := catalog(t)
	r := h.expect(h.get(itemPath, h.reader), 200, "")
	if !bytes.Equal(r.body, body) {
		t.Errorf("body %s", r.body)
	}
	for name, want := range map[string]string{"Content-Type": "application/json", "ETag": plainTag,
		"Cache-Control": "private, max-age=5",
		"Vary":          "Accept-Encoding", "Content-Encoding": "", "Content-Length": fmt.Sprint(len(body))} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s %q, want %q", name, got, want)
		}
	}
	if r.Header.Get("RateLimit") == "" {
		t.Error("no RateLimit")
	}
	head := h.expect(h.request("HEAD", itemPath, h.reader), 200, "")
	if len(head.body) != 0 || head.Header.Get("ETag") != plainTag ||
		head.Header.Get("Content-Length") != fmt.Sprint(len(body)) {
		t.Errorf("HEAD: %v %q", head.Header, head.body)
	}
	if got := h.items.got[0]; got.ConnectionID != "con_mine" || got.Client.Key != "key_c" ||
		!got.Client.Address.IsValid() {
		t.Errorf("request %+v", got)
	}
}

func TestItemCompressed(t *testing.T) {
	t.Parallel()
	h, body := catalog(t)
	r := h.expect(h.get(itemPath, h.reader, "Accept-Encoding: br, gzip;q=0.8"), 200, "")
	if r.Header.Get("Content-Encoding") != "gzip" || r.Header.Get("ETag") != gzipTag ||
		r.Header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("%v", r.Header)
	}
	if got := decoded(t, r); !bytes.Equal(got, body) {
		t.Errorf("%s", got)
	}
	small := itemread.Key{Connection: "con_mine", Item: "itm_small"}
	h.items.docs[small] = itemread.NewDocument(small.Item, itemread.Version{Revision: 1, Body: body[:1024]})
	if r := h.first(h.get("/v1/catalog/items/itm_small", h.secret, "Accept-Encoding: gzip",
		"If-None-Match: *")); r.StatusCode != 304 || r.Header.Get("ETag") != `"itm_small.1"` {
		t.Errorf("a small body: %d %v", r.StatusCode, r.Header)
	}
}

func TestItemNotModified(t *testing.T) {
	t.Parallel()
	h, _ := catalog(t)
	for field, want := range map[string]string{
		plainTag: plainTag, "W/" + plainTag: plainTag, `"x", ` + plainTag: plainTag, "*": plainTag,
		` "a" , * `: plainTag, gzipTag: gzipTag,
		`"itm_lhto54sgatsoe2dof4gv046logsm653b.8"`: "", `"x"`: "",
		"itm_lhto54sgatsoe2dof4gv046logsm653b.9": "", "": "", ",": "", "W/": "",
	} {
		r := h.first(h.get(itemPath, h.reader, "If-None-Match: "+field))
		switch {
		case want == "" && r.StatusCode != 200:
			t.Errorf("%q: %d", field, r.StatusCode)
		case want != "" && (r.StatusCode != 304 || len(r.body) != 0 || r.Header.Get("ETag") != want ||
			r.Header.Get("Cache-Control") == "" || r.Header.Get("Vary") == ""):
			t.Errorf("%q: %d %v %q", field, r.StatusCode, r.Header, r.body)
		}
	}
	if r := h.first(h.get(itemPath, h.reader, "If-None-Match: *",
		"Accept-Encoding: gzip")); r.StatusCode != 304 || r.Header.Get("ETag") != gzipTag {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	if r := h.first(h.get(itemPath, h.reader, `If-None-Match: "a"`, "If-None-Match: "+
		plainTag)); r.StatusCode != 304 {
		t.Errorf("the second field: %d", r.StatusCode)
	}
	if r := h.first(h.request("HEAD", itemPath, h.reader, "If-None-Match: "+plainTag)); r.StatusCode != 304 {
		t.Errorf("HEAD: %d", r.StatusCode)
	}
}

func TestAcceptsGzip(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]bool{"": false, "gzip": true, "GZip": true, "br, gzip": true,
		"deflate": false, "*": true, "identity": false,
		"gzip;q=0": false, "gzip; q=0.0": false, "gzip;q=0.1": true, "*;q=0": false, "*, gzip;q=0": false,
		"gzip, *;q=0": true, "x-gzip": true,
		"gzip;Q=0.000": false, ",,gzip ;q=1,": true, "gzipped": false, "gzip;q=": true} {
		if got := acceptsGzip([]byte(field)); got != want {
			t.Errorf("%q: %t", field, got)
		}
	}
}

// Missing items, items of others and malformed ids get the same answer. (The use case does the same for
// deleted items.)
func TestItemNotFound(t *testing.T) {
	t.Parallel()
	h, _ := catalog(t)
	shape := func(request string) string {
		r := h.expect(request, 404, fault.NotFound)
		id := r.Header.Get("X-Request-Id")
		for _, name := range []string{"Date", "RateLimit", "RateLimit-Policy", "X-Request-Id"} {
			r.Header.Del(name)
		}
		return fmt.Sprint(r.Header, strings.ReplaceAll(string(r.body), id, "ID"))
	}
	missing := shape(h.get("/v1/catalog/items/itm_missing0000000000000000000000000", h.reader,
		"X-Request-Id: same"))
	for name, request := range map[string]string{
		"foreign":     h.get(itemPath, h.foreign, "X-Request-Id: same"),
		"malformed":   h.get("/v1/catalog/items/itm_%41", h.reader, "X-Request-Id: same"),
		"no item id":  h.get("/v1/catalog/items/dec_1", h.reader, "X-Request-Id: same"),
		"empty":       h.get("/v1/catalog/items/", h.reader, "X-Request-Id: same"),
		"conditional": h.get(itemPath, h.foreign, "If-None-Match: *", "X-Request-Id: same"),
	} {
		if got := shape(request); got != missing {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, missing)
		}
	}
}

func TestItemRefusals(t *testing.T) {
	t.Parallel()
	h, _ := catalog(t)
	h.expect(h.get(itemPath, ""), 401, fault.Unauthorized)
	h.keys.mu.Lock()
	grant := h.keys.grants[h.reader]
	grant.Scopes = nil
	h.keys.grants["spk_none"] = grant
	h.keys.mu.Unlock()
	h.expect(h.get(itemPath, "spk_none"), 403, fault.ForbiddenScope)
	if r := h.expect(h.post(itemPath, h.reader, "{}"), 405,
		fault.MethodNotAllowed); r.Header.Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("Allow %q", r.Header.Get("Allow"))
	}
	h.expect(h.get(itemPath, h.reader, "Content-Length: 2")+"{}", 400, fault.InvalidRequest)
	for _, err := range []*fault.Error{{Code: fault.ServiceUnavailable, RetryAfter: time.Second},
		{Code: fault.RateLimited, RetryAfter: time.Second}} {
		h.items.mu.Lock()
		h.items.err = err
		h.items.mu.Unlock()
		status := map[fault.Code]int{fault.ServiceUnavailable: 503, fault.RateLimited: 429}[err.Code]
		if r := h.expect(h.get(itemPath, h.reader), status, err.Code); r.Header.Get("Retry-After") == "" ||
			r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v", r.Header)
		}
	}
}

// Signals that fill their limit leave room for reads, and the other way round.
func TestReadsAndSignalsDoNotStarveEachOther(t *testing.T) {
	t.Parallel()
	h, _ := catalog(t, func(c *Config) {
		c.WorkLimits, c.ReadLimits = overload.Config{MaxInFlight: 1}, overload.Config{MaxInFlight: 1}
		c.RateLimiter = ratelimit.New(ratelimit.Config{PerKey: ratelimit.Quota{PerSecond: 1e6, Burst: 1e6},
			PerAddress: ratelimit.Quota{PerSecond: 1e6, Burst: 1e6}})
	})
	signal, _, ok := h.server.workLimiter.Acquire(t.Context(), 0, nil)
	if !ok {
		t.Fatal("no permit is free from the start")
	}
	h.expect(h.post(myPath, h.secret, `{}`), 503, fault.SignalsUnavailable)
	h.expect(h.get(itemPath, h.reader), 200, "")
	h.server.workLimiter.Release(signal)
	read, _, ok := h.server.readLimiter.Acquire(t.Context(), 0, nil)
	if !ok {
		t.Fatal("a read did not release its permit")
	}
	h.expect(h.get(itemPath, h.reader), 503, fault.ServiceUnavailable)
	h.expect(h.post(myPath, h.secret, `{}`), 202, "")
	h.server.readLimiter.Release(read)
}
