package outbound

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// refusedURLs are URLs that may not be called. The addresses behind names have a table of their own.
func refusedURLs() []string {
	return []string{
		// addresses, in every notation
		"https://127.0.0.1/", "https://127.1/", "https://127.0.1/", "https://2130706433/",
		"https://0x7f000001/", "https://0x7f.0.0.1/", "https://0x7f.1/",
		"https://0177.0.0.1/", "https://017700000001/", "https://0/", "https://0.0.0.0/", "https://00.0.0.0/",
		"https://127.0.0.1./", "https://127.000.000.001/",
		"https://8.8.8.8/", "https://134744072/", "https://10.0.0.1/", "https://172.16.0.1/",
		"https://192.168.1.1/", "https://169.254.169.254/latest/meta-data/",
		"https://0xa9fea9fe/", "https://2852039166/", "https://0251.0376.0251.0376/",
		"https://100.100.100.200/", "https://168.63.129.16/", "https://192.0.0.192/",
		"https://[::1]/", "https://[::]/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/",
		"https://[::ffff:a9fe:a9fe]/", "https://[0:0:0:0:0:ffff:10.0.0.1]/",
		"https://[fd00:ec2::254]/", "https://[fe80::1]/", "https://[fe80::1%25eth0]/",
		"https://[64:ff9b::7f00:1]/", "https://[2002:7f00:1::]/", "https://[2606:4700::1111]/",
		"https://[127.0.0.1]/", "https://[localhost]/", "https://[shop.example.org]/", "https://[::1]:443/",
		"https://[::1", "https://::1/",
		"https://①②⑦.0.0.1/", "https://127。0。0。1/", "https://１２７.0.0.1/",
		// names outside of the public DNS
		"https://localhost/", "https://LOCALHOST/", "https://localhost./", "https://foo.localhost/",
		"https://localhost.localdomain/", "https://printer.local/", "https://metadata/",
		"https://metadata.google.internal/", "https://vault.internal/", "https://db.corp/",
		"https://nas.lan/", "https://router.home/", "https://1.0.0.127.in-addr.arpa/",
		"https://kubernetes.default.svc/", "https://kubernetes.default.svc.cluster.local/",
		"https://x.onion/", "https://a.test/", "https://x.example/", "https://x.invalid/",
		"https://127.0.0.1.nip.io/", "https://10-0-0-1.sslip.io/", "https://localtest.me/",
		"https://a.localtest.me/", "https://lvh.me/",
		"https://shop/", "https://shop.example.org./", "https://.example.org/", "https://shop..example.org/",
		"https://-shop.example.org/", "https://shop_.example.org/",
		"https://shop.example.1/", "https://shop.0x1/", "https://shop.example.c0m/",
		"https://" + strings.Repeat("a", 64) + ".org/", "https://" + strings.Repeat("a.", 130) + "org/",
		"https://shöp.example.org/", "https://shop.example.org%00.evil.org/",
		"https://shop.example.org%2f@x/", "https://shop.example.o/",
		// other schemes, ports, credentials, and texts that are no URLs
		"http://shop.example.org/", "ftp://shop.example.org/", "file:///etc/passwd",
		"gopher://shop.example.org/", "javascript:alert(1)", "//shop.example.org/", "shop.example.org",
		"https://shop.example.org:80/", "https://shop.example.org:8443/", "https://shop.example.org:/",
		"https://shop.example.org:0/", "https://shop.example.org:443443/", "https://shop.example.org:22/",
		"https://user@shop.example.org/", "https://user:pass@shop.example.org/",
		"https://:@shop.example.org/", "https://shop.example.org@127.0.0.1/",
		"https://shop.example.org#@127.0.0.1/",
		"https://127.0.0.1\\@shop.example.org/", "https://shop.example.org\\.evil.org/", "https://",
		"https:///x", "https:shop.example.org", "", " https://shop.example.org/",
		"https://shop.example.org /",
		"https://shop.example.org\r\nHost: x/", "https://shop.example.org/\x00",
		"https://a.org/" + strings.Repeat("x", 9000),
	}
}

func TestRefusedURLs(t *testing.T) {
	t.Parallel()
	g := newGuard(nil)
	if n := len(refusedURLs()); n < 100 {
		t.Fatalf("the table has %d rows", n)
	}
	for _, text := range refusedURLs() {
		if u, err := g.check(text); err == nil {
			t.Errorf("%q passes as host %q", text, u.Host)
		}
	}
}

func TestTakenURLs(t *testing.T) {
	t.Parallel()
	g := newGuard(nil)
	for _, text := range []string{"https://shop.example.org", "https://shop.example.org:443/a?b=c",
		"https://SHOP.example.ORG/", "https://api.tiendanube.com/v1/1/products", "https://a.co/",
		"https://xn--shp-rna.example.org/", "https://shop.xn--p1ai/", "https://1.2.3.example.org/",
		"https://127.0.0.1.example.org/", "https://demo.myshopify.com/admin/api/2026-07/graphql.json"} {
		if _, err := g.check(text); err != nil {
			t.Errorf("%q is refused", text)
		}
	}
	open := newGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	for text, want := range map[string]bool{"http://127.0.0.1:9999/x": true, "https://127.0.0.1:1/": true,
		"http://[::ffff:127.0.0.1]:1/": true, "http://10.0.0.1/": false, "http://localhost:1/": false,
		"ftp://127.0.0.1/": false, "http://u@127.0.0.1/": false} {
		if _, err := open.check(text); (err == nil) != want {
			t.Errorf("open networks: %q: %v", text, err)
		}
	}
}

func addresses() map[string]bool {
	return map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "23.227.38.65": true, "172.15.255.255": true, "172.32.0.1": true,
		"100.63.255.255": true, "100.128.0.1": true, "192.169.0.1": true, "11.0.0.1": true,
		"169.253.1.1": true, "223.255.255.254": true, "2606:4700::1111": true, "2a00:1450:4001::200e": true,
		"::ffff:8.8.8.8": true,
		"0.0.0.0":        false, "0.1.2.3": false, "10.0.0.1": false, "10.255.255.255": false,
		"100.64.0.1":      false,
		"100.127.255.255": false, "127.0.0.1": false, "127.255.255.254": false,
		"169.254.169.254": false, "169.254.0.1": false, "172.16.0.1": false, "172.31.255.255": false,
		"192.0.0.1": false, "192.0.2.1": false, "192.88.99.1": false, "192.168.0.1": false,
		"198.18.0.1": false, "198.19.255.255": false, "198.51.100.1": false, "203.0.113.7": false,
		"224.0.0.1": false, "239.255.255.255": false, "240.0.0.1": false, "255.255.255.255": false,
		"168.63.129.16": false, "::": false, "::1": false, "::ffff:127.0.0.1": false,
		"::ffff:10.0.0.1": false, "::ffff:169.254.169.254": false, "::127.0.0.1": false,
		"::ffff:0:127.0.0.1": false,
		"64:ff9b::7f00:1":    false, "64:ff9b::808:808": false, "64:ff9b:1::1": false, "100::1": false,
		"2001::1": false, "2001:0:4136:e378:8000:63bf:3fff:fdd2": false, "2001:db8::1": false,
		"2002:7f00:1::": false, "2002:808:808::": false, "fc00::1": false, "fd00:ec2::254": false,
		"fdff::1": false, "fe80::1": false, "febf::1": false, "fec0::1": false, "ff02::1": false,
		"3fff::1": false, "5f00::1": false, "4000::1": false, "fe80::1%eth0": false,
		"2606:4700::1111%x": false,
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	g := newGuard(nil)
	for text, want := range addresses() {
		a := netip.MustParseAddr(text)
		if got := g.allowed(netip.AddrPortFrom(a, 443)); got != want {
			t.Errorf("%s: %v", text, got)
		}
		if g.allowed(netip.AddrPortFrom(a, 80)) || g.allowed(netip.AddrPortFrom(a, 6379)) {
			t.Errorf("%s: another port than that of https", text)
		}
		err := g.control("tcp"+map[bool]string{true: "4", false: "6"}[a.Is4()],
			netip.AddrPortFrom(a, 443).String(), nil)
		if (err == nil) != want {
			t.Errorf("dialing %s: %v", text, err)
		}
	}
	for _, network := range []string{"udp4", "unix", "tcp"} {
		if g.control(network, "8.8.8.8:443", nil) == nil {
			t.Errorf("network %s", network)
		}
	}
	if g.control("tcp4", "nonsense", nil) == nil || g.control("tcp4", "", nil) == nil {
		t.Error("an address that is none")
	}
}

// FuzzURL accepts no URL whose host another parser could take for an address or for a name of this machine.
func FuzzURL(f *testing.F) {
	for _, text := range refusedURLs() {
		f.Add(text)
	}
	f.Add("https://shop.example.org:443/a?b=c")
	g := newGuard(nil)
	f.Fuzz(func(t *testing.T, text string) {
		u, err := g.check(text)
		if err != nil {
			return
		}
		again, err := url.Parse(u.String())
		if err != nil || again.Host != u.Host || u.Scheme != "https" || u.User != nil {
			t.Fatalf("%q is read in two ways", text)
		}
		host := strings.ToLower(u.Hostname())
		last := host[strings.LastIndexByte(host, '.')+1:]
		if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") ||
			strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" ||
			last[0] >= '0' && last[0] <= '9' || last == "localhost" || last == "internal" {
			t.Fatalf("%q passes as %q", text, host)
		}
	})
}

// FuzzAddress compares the guard with the predicates of the standard library.
func FuzzAddress(f *testing.F) {
	for text := range addresses() {
		f.Add(netip.MustParseAddr(text).AsSlice())
	}
	g := newGuard(nil)
	public := func(a netip.Addr) bool { return g.allowed(netip.AddrPortFrom(a, 443)) }
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok || !public(a) {
			return
		}
		u := a.Unmap()
		if u.IsPrivate() || u.IsLoopback() || u.IsLinkLocalUnicast() || u.IsMulticast() ||
			u.IsUnspecified() || u.IsInterfaceLocalMulticast() {
			t.Fatalf("%s is public", a)
		}
		if u != a && !public(u) {
			t.Fatalf("%s and %s differ", a, u)
		}
	})
}
