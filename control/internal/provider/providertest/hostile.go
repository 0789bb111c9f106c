package providertest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/catalog"
)

// zeros are the elements of a page: numbers, which need the fewest bytes.
func zeros(bytes int) string { return strings.Repeat("0,", bytes/2) + "0" }

// updatedLately makes adapters list the updated products, since whole listings may be files.
func updatedLately() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// testMoreElements answers every request with more elements than any adapter asks for.
func testMoreElements(t *testing.T, open Open) {
	s := open(t, Client(t, callTimeout))
	s.SetFault(Fault{Status: 200, Body: s.Listing(zeros(2000))})
	page, err := s.Adapter.Page(t.Context(), s.Shop, catalog.Product, updatedLately(), "")
	var malformed *provider.Malformed
	if !errors.As(err, &malformed) || malformed.Reason != "more elements than asked for" ||
		len(page.Items) > 0 {
		t.Errorf("%d items, %v", len(page.Items), err)
	}
}

// HostilePages tests that pages which are small on the wire and huge in memory are refused cheaply. It
// measures what the process allocates, so its test runs alone.
func HostilePages(t *testing.T, open Open) {
	tooLarge := provider.Reason(outbound.TooLarge)
	for name, c := range map[string]struct {
		bytes int
		want  []provider.Reason
	}{
		// GraphQL wraps the page, so the values of the whole response are counted before its elements.
		"1.4 MB": {1_400_000, []provider.Reason{provider.ReasonMalformed, tooLarge}},
		"16 MiB": {16<<20 - 100, []provider.Reason{tooLarge}},
	} {
		t.Run(name, func(t *testing.T) {
			client := ProductionClient(t)
			s := open(t, client)
			s.SetFault(Fault{Status: 200, Header: map[string]string{"Content-Encoding": "gzip"},
				Body: compress(t, s.Listing(zeros(c.bytes)))})
			var page provider.Page
			var err error
			allocated := Allocated(func() {
				page, err = s.Adapter.Page(t.Context(), s.Shop, catalog.Product, updatedLately(), "")
			})
			if !slices.Contains(c.want, provider.ReasonOf(err)) || len(page.Items) > 0 {
				t.Errorf("%d items, %v", len(page.Items), err)
			}
			if t.Logf("%d MiB allocated", allocated>>20); allocated > 100<<20 {
				t.Errorf("%d MiB allocated", allocated>>20)
			}
		})
	}
}

// ProductionClient returns a client with the bounds of production that may call this machine.
func ProductionClient(t *testing.T) *outbound.Client {
	t.Helper()
	c, err := outbound.New(outbound.Config{Timeout: callTimeout,
		AllowedNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Allocated returns how many bytes the process allocates during a call, whether they are freed or not.
func Allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func compress(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
