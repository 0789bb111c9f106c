package bench

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/local/services"
)

// What the fake platform's stores hold, and our app there.
const (
	platformProducts = 10_000
	platformApp      = "4242"
	platformSecret   = "bench-secret"
)

// withPlatform is a stack beside the fake platforms, which limit nobody.
func withPlatform(b *testing.B) *stack {
	b.Helper()
	listen := free(b)
	s := newStack(b, func(c *services.Settings) {
		c.ProviderURL, c.AppID, c.AppSecret = "http://"+listen, platformApp, platformSecret
	})
	p, err := process.Start(process.Spec{Name: "fakeprovider", Path: filepath.Join(s.settings.Bin, "fakeprovider"), Env: append(services.Plain(os.Environ()),
		"FAKEPROVIDER_LISTEN="+listen, "FAKEPROVIDER_APP_SECRET="+platformSecret, fmt.Sprint("FAKEPROVIDER_PRODUCTS=", platformProducts),
		"FAKEPROVIDER_THROTTLE=off", "FAKEPROVIDER_CONTROL=http://"+s.control.address, "FAKEPROVIDER_CONNECTOR_TOKENS="+s.settings.ConnectorTokens())})
	check(b, err)
	b.Cleanup(p.Kill)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	check(b, p.WaitReady(ctx, func(ctx context.Context) error {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", listen)
		if err == nil {
			err = c.Close()
		}
		return err
	}))
	return s
}

func (s *stack) install(provider, store string) services.Installed {
	s.b.Helper()
	got, err := s.api.Install(context.Background(), services.Installation{
		Provider: provider, AppID: platformApp, ExternalStoreID: store, AccessToken: "demo-bench:secret",
		Profile: map[string]string{"language": "es", "currency": "ARS"},
	})
	check(s.b, err)
	return got
}

// loaded waits until the load of an installation has ended and answers it.
func (s *stack) loaded(connection string) services.Run {
	s.b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	run, err := s.api.Loaded(ctx, connection)
	check(s.b, err)
	return run
}

// BenchmarkBootstrap is the first load of a store (operation 5 and what follows by itself) until its catalog is there, one platform after
// the other, with everything on the machine: the platform too.
func BenchmarkBootstrap(b *testing.B) {
	s := withPlatform(b)
	for _, provider := range []struct{ name, store string }{{"tiendanube", "501"}, {"shopify", "bench.myshopify.com"}, {"woocommerce", "bench.shop.example"}} {
		used, begun := s.control.cpu(b), time.Now()
		var got services.Installed
		profile(b, s.control, "control-"+provider.name, func() {
			got = s.install(provider.name, provider.store)
			for s.number("SELECT count(*) FROM control.bootstrap_runs WHERE connection_id = $1 AND state = 'completed'", got.ConnectionID) == 0 {
				if time.Since(begun) > 5*time.Minute {
					b.Fatalf("%s: no end of the load", provider.name)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
		seconds := time.Since(begun).Seconds()
		if n := s.number("SELECT count(*) FROM control.aggregates WHERE connection_id = $1", got.ConnectionID); n != platformProducts {
			b.Fatalf("%s: %d products", provider.name, n)
		}
		cpu := (s.control.cpu(b) - used) / platformProducts
		rows.add("load of %d products, %-12s %8.0f products/s  CPU of control %s a product", platformProducts, provider.name, platformProducts/seconds,
			cpu.Round(time.Microsecond))
		b.ReportMetric(platformProducts/seconds, provider.name+"-products/s")
	}
	b.ReportMetric(0, "ns/op") // one run is one measurement, longer than a benchmark's second
}

// BenchmarkWebhook is operation 12: deliveries of which only the archive is wanted, and deliveries that mark a product each and set off
// its fetch, which goes on beside them.
func BenchmarkWebhook(b *testing.B) {
	s := withPlatform(b)
	got := s.install("tiendanube", "502")
	s.loaded(got.ConnectionID)
	const deliveries, senders = 6000, 16
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: senders}}
	url := "http://" + s.control.address + "/internal/v1/webhooks/tiendanube/" + got.EndpointID
	for _, kind := range []struct{ name, event string }{{"archived", "domain/updated"}, {"marked", "product/updated"}} {
		used := s.control.cpu(b)
		seconds := elapsed(b, senders, deliveries, func(i int) error {
			body := fmt.Appendf(nil, `{"store_id":502,"event":%q,"id":%d}`, kind.event, 1001+i%2000)
			mac := hmac.New(sha256.New, []byte(platformSecret))
			mac.Write(body)
			return s.hand(client, url, hex.EncodeToString(mac.Sum(nil)), body)
		})
		cpu := (s.control.cpu(b) - used) / deliveries
		rows.add("operation 12, %-12s %8.0f deliveries/s  CPU of control %s a delivery", kind.name, deliveries/seconds, cpu.Round(time.Microsecond))
		b.ReportMetric(deliveries/seconds, kind.name+"/s")
	}
	b.ReportMetric(0, "ns/op")
}

func (s *stack) hand(client *http.Client, url, signature string, body []byte) error {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+s.settings.ConnectorToken)
	r.Header.Set("Content-Type", "application/octet-stream")
	r.Header.Set("X-Provider-Signature", signature)
	res, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusAccepted {
		return fmt.Errorf("%s: %w", res.Status, err)
	}
	return nil
}
