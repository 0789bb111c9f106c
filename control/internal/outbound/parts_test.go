package outbound

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestParts(t *testing.T) {
	t.Parallel()
	const text = "0123456789abcdefghij"
	ranged := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
	})
	whole := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
	chunked := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for _, c := range text {
			fmt.Fprintf(w, "%c", c)
			_ = http.NewResponseController(w).Flush()
		}
	})
	for _, url := range []string{ranged, whole, chunked} {
		for _, size := range []int64{1, 3, 7, 19, 20, 21, 100} {
			c, got := client(t, Config{AllowedNetworks: local(), MaxBody: 50}), ""
			for offset, end := int64(0), false; !end; {
				a, err := c.Do(t.Context(),
					Request{Method: http.MethodGet, URL: url, Range: &ByteRange{offset, size}})
				if err != nil || len(a.Body) == 0 {
					t.Fatalf("offset %d: %+v, %v", offset, a, err)
				}
				got, offset, end = got+string(a.Body), offset+int64(len(a.Body)), a.EOF
			}
			if got != text {
				t.Errorf("in parts of %d: %q", size, got)
			}
		}
	}
	c := client(t, Config{AllowedNetworks: local(), MaxBody: 50})
	if a, err := c.Do(t.Context(),
		Request{Method: http.MethodGet, URL: whole, Range: &ByteRange{20, 5}}); err != nil ||
		len(a.Body) != 0 || !a.EOF {
		t.Errorf("at the end: %+v, %v", a, err)
	}
	if a, err := c.Do(t.Context(),
		Request{Method: http.MethodGet, URL: ranged, Range: &ByteRange{20, 5}}); err != nil ||
		a.Status != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("at the end of ranges: %+v, %v", a, err)
	}
	for _, header := range []string{"bytes 5-9/20", "bytes */20", "", "lines 0-4/20", "bytes x-4/20"} {
		lying := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", header)
			w.WriteHeader(http.StatusPartialContent)
			fmt.Fprint(w, text[:5])
		})
		if _, err := c.Do(t.Context(),
			Request{Method: http.MethodGet, URL: lying,
				Range: &ByteRange{0, 5}}); reason(err) != BadContentRange {
			t.Errorf("Content-Range %q: %v", header, err)
		}
	}
}
