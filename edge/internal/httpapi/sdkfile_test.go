package httpapi

import (
	"bytes"
	"testing"

	"storefront.internal/edge/internal/sdkfiles"
)

const (
	sdkPath = "/v1/sdk/0.1.0/storefront.iife.js"
	sdkTag  = `"0123456789abcdef0123456789abcdef"`
)

// withSDK serves one file.
func withSDK(c *Config) {
	c.SDK = sdkfiles.Files{"0.1.0/storefront.iife.js": {Body: []byte("let sdk = 1"),
		Gzip: []byte("compressed"), ETag: []byte(sdkTag)}}
}

// A page of any origin may load a file without a key and keep it for ever.
func TestSDKFile(t *testing.T) {
	t.Parallel()
	h := start(t, withSDK)
	r := h.expect(h.get(sdkPath, ""), 200, "")
	if string(r.body) != "let sdk = 1" {
		t.Errorf("body %q", r.body)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/javascript; charset=utf-8", "ETag": "W/" + sdkTag, "Vary": "Accept-Encoding",
		"Cache-Control":                "public, max-age=31536000, immutable",
		"Access-Control-Allow-Origin":  "*",
		"Cross-Origin-Resource-Policy": "cross-origin",
		"Content-Encoding":             "", "Content-Length": "11", "X-Content-Type-Options": "nosniff",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s %q, want %q", name, got, want)
		}
	}
	head := h.expect(h.request("HEAD", sdkPath, ""), 200, "")
	if len(head.body) != 0 || head.Header.Get("Content-Length") != "11" {
		t.Errorf("HEAD: %v %q", head.Header, head.body)
	}
	if n := gather(t, h, "storefront_edge_http_request_duration_seconds"); n != 2 {
		t.Errorf("%v requests are in the metrics", n)
	}
}

func TestSDKFileCompressed(t *testing.T) {
	t.Parallel()
	h := start(t, withSDK)
	for accept, want := range map[string]string{"gzip": "gzip", "br, gzip;q=0.5": "gzip", "gzip;q=0": "",
		"identity": ""} {
		replies, _ := h.raw(h.get(sdkPath, "", "Accept-Encoding: "+accept), "GET")
		r := replies[0]
		if got := r.Header.Get("Content-Encoding"); got != want ||
			bytes.Equal(r.body, []byte("compressed")) != (want == "gzip") {
			t.Errorf("%s: coding %q, body %q", accept, got, r.body)
		}
	}
}

func TestSDKFileThatIsHeld(t *testing.T) {
	t.Parallel()
	h := start(t, withSDK)
	for _, held := range []string{sdkTag, "W/" + sdkTag, "*", `"other", W/` + sdkTag} {
		r := h.expect(h.get(sdkPath, "", "If-None-Match: "+held), 304, "")
		if len(r.body) != 0 || r.Header.Get("ETag") != "W/"+sdkTag ||
			r.Header.Get("Cache-Control") != sdkCaching {
			t.Errorf("%s: %v %q", held, r.Header, r.body)
		}
	}
	h.expect(h.get(sdkPath, "", `If-None-Match: "other"`), 200, "")
}

// Other paths, and every path where the SDK is not served, are a problem.
func TestSDKFilesThatAreNotThere(t *testing.T) {
	t.Parallel()
	on, off := start(t, withSDK), start(t)
	for _, path := range []string{"/v1/sdk/0.2.0/storefront.iife.js", "/v1/sdk/0.1.0/", "/v1/sdk/0.1.0",
		"/v1/sdk/", "/v1/sdk/0.1.0/../0.1.0/storefront.iife.js", "/v1/sdk/0.1.0/storefront%2eiife.js",
		sdkPath + "/", "/sdk/0.1.0/storefront.iife.js"} {
		on.expect(on.get(path, ""), 404, "not_found")
	}
	on.expect(on.request("POST", sdkPath, ""), 405, "method_not_allowed")
	off.expect(off.get(sdkPath, ""), 404, "not_found")
}
