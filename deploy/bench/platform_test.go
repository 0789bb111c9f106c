package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"storefront.internal/deploy/stack/client"
)

// The size of the fake platforms' shops, and our app there.
const (
	platformProducts = 10_000
	platformApp      = "4242"
	platformSecret   = "bench-secret"
)

// withPlatform is a deployment with the fake platforms. Neither they nor control limit the rate.
func withPlatform(b *testing.B) *deployment {
	b.Helper()
	s := emptyDeployment(b)
	s.Settings.AppID, s.Settings.AppSecret = platformApp, platformSecret
	s.start(s.Provider("control", fmt.Sprint("FAKEPROVIDER_PRODUCTS=", platformProducts),
		"FAKEPROVIDER_THROTTLE=off"))
	s.prepare("CONTROL_WEBHOOK_DELIVERIES_PER_MINUTE=1000000")
	return s
}

func (s *deployment) install(provider, store string) client.Installed {
	s.b.Helper()
	got, err := s.api.OpenInstallation(context.Background(), client.Installation{
		Provider: provider, AppID: platformApp, ExternalStoreID: store, AccessToken: "demo-bench:secret",
		Profile: map[string]string{"language": "es", "currency": "ARS"},
	})
	check(s.b, err)
	return got
}

// loaded waits until the bootstrap run of an installation has ended and returns it.
func (s *deployment) loaded(connection string) client.BootstrapRun {
	s.b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	run, err := s.api.AwaitCatalog(ctx, connection)
	check(s.b, err)
	return run
}

// BenchmarkBootstrap is the first bootstrap run of a shop, from the installation until its catalog is there,
// for one platform after the other, with the fake platform on the same machine.
func BenchmarkBootstrap(b *testing.B) {
	s := withPlatform(b)
	for _, provider := range []struct{ name, store string }{{"tiendanube", "501"},
		{"shopify", "bench.myshopify.com"}, {"woocommerce", "bench.shop.example"}} {
		used, begun := s.control.cpu(b), time.Now()
		var got client.Installed
		profile(b, s.control, "control-"+provider.name, func() {
			got = s.install(provider.name, provider.store)
			for s.number("SELECT count(*) FROM control.bootstrap_runs WHERE connection_id = $1 AND state "+
				"= 'completed'", got.ConnectionID) == 0 {
				if time.Since(begun) > 5*time.Minute {
					b.Fatalf("%s: no end of the load", provider.name)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
		seconds := time.Since(begun).Seconds()
		if n := s.number("SELECT count(*) FROM control.aggregates WHERE connection_id = $1",
			got.ConnectionID); n != platformProducts {
			b.Fatalf("%s: %d products", provider.name, n)
		}
		cpu := (s.control.cpu(b) - used) / platformProducts
		rows.add("load of %d products, %-12s %8.0f products/s  CPU of control %s a product",
			platformProducts, provider.name, platformProducts/seconds,
			cpu.Round(time.Microsecond))
		b.ReportMetric(platformProducts/seconds, provider.name+"-products/s")
	}
	b.ReportMetric(0, "ns/op") // one run is one measurement, longer than a benchmark's second
}

// BenchmarkWebhook delivers webhooks: some are only archived, others mark a product and start its fetch in
// the background.
func BenchmarkWebhook(b *testing.B) {
	s := withPlatform(b)
	got := s.install("tiendanube", "502")
	s.loaded(got.ConnectionID)
	const deliveries, senders = 6000, 16
	api := s.api
	api.HTTP = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: senders}}
	for _, kind := range []struct{ name, event string }{{"archived", "domain/updated"},
		{"marked", "product/updated"}} {
		used := s.control.cpu(b)
		seconds := elapsed(b, senders, deliveries, func(i int) error {
			body := fmt.Appendf(nil, `{"store_id":502,"event":%q,"id":%d}`, kind.event, 1001+i%2000)
			r := api.DeliverWebhook(context.Background(), client.ConnectorProvider, got.EndpointID,
				platformSecret, body)
			if r.Err == nil && r.Status != http.StatusAccepted {
				return errors.New(r.String())
			}
			return r.Err
		})
		cpu := (s.control.cpu(b) - used) / deliveries
		rows.add("delivering webhooks, %-12s %8.0f deliveries/s  CPU of control %s a delivery", kind.name,
			deliveries/seconds, cpu.Round(time.Microsecond))
		b.ReportMetric(deliveries/seconds, kind.name+"/s")
	}
	b.ReportMetric(0, "ns/op")
}
