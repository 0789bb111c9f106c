package outbound

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"
)

const longestURL = 8 << 10

// guard decides where requests may go.
type guard struct {
	public *ssrf.Guardian
	open   []netip.Prefix // of tests and the local stack
}

func newGuard(open []netip.Prefix) guard {
	azureMetadata := netip.MustParsePrefix("168.63.129.16/32") // a metadata service on a public address
	return guard{public: ssrf.New(ssrf.WithPorts(443), ssrf.WithDeniedV4Prefixes(azureMetadata)), open: open}
}

// control is called by the dialer with the address that it is about to connect to, after the name was
// resolved.
func (g *guard) control(network, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || (network != "tcp4" && network != "tcp6") || !g.allowed(at) {
		return &Error{Reason: AddressForbidden}
	}
	return nil
}

// allowed reports whether an address may be dialed: a public one at port 443, or any port of an open network.
func (g *guard) allowed(at netip.AddrPort) bool {
	a := at.Addr().Unmap()
	return g.isOpen(a) || g.public.SafeAddrPort(netip.AddrPortFrom(a, at.Port())) == nil
}

func (g *guard) isOpen(a netip.Addr) bool {
	return slices.ContainsFunc(g.open, func(p netip.Prefix) bool { return p.Contains(a) })
}

// check parses a URL and checks it before anything is resolved. Only open networks may be called by plain
// http, at another port, or by address.
func (g *guard) check(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case len(text) > longestURL, err != nil, u.User != nil, u.Opaque != "", u.Fragment != "", u.Host == "":
		return nil, &Error{Reason: AddressForbidden}
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		if g.isOpen(a.Unmap()) && (u.Scheme == "http" || u.Scheme == "https") {
			return u, nil
		}
		return nil, &Error{Reason: AddressForbidden}
	}
	port := u.Port()
	if u.Scheme != "https" || strings.HasSuffix(u.Host, ":") || port != "" && port != "443" ||
		!PublicName(u.Hostname()) {
		return nil, &Error{Reason: AddressForbidden}
	}
	return u, nil
}

// PublicName reports whether a host is a name of the public DNS in its plain form: at least two labels of
// letters, digits and hyphens, at most 253 bytes, no final dot, and an alphabetic (or punycode) last label.
// So no notation of an address passes: octal, decimal, hexadecimal or in brackets. Names of private and
// special zones are refused; names outside ASCII have to be in punycode.
func PublicName(host string) bool {
	const longestName = 253
	labels := strings.Split(strings.ToLower(host), ".")
	if len(host) > longestName || len(labels) < 2 {
		return false
	}
	for _, label := range labels {
		if !isLabel(label) {
			return false
		}
	}
	last := labels[len(labels)-1]
	if !strings.HasPrefix(last, "xn--") && strings.ContainsAny(last, "0123456789-_") || len(last) < 2 {
		return false
	}
	return !special(labels)
}

func isLabel(label string) bool {
	const longest = 63
	for i := range len(label) {
		c := label[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return label != "" && len(label) <= longest && label[0] != '-' && label[len(label)-1] != '-'
}

// special reports whether the labels are of a zone that is not of the public DNS (RFC 6761, RFC 8375,
// "internal" and common names of private networks) or that resolves to addresses written in the name.
func special(labels []string) bool {
	switch labels[len(labels)-1] {
	case "localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private",
		"test", "example",
		"invalid", "onion", "alt", "arpa", "svc", "cluster":
		return true
	}
	switch strings.Join(labels[len(labels)-2:], ".") {
	case "nip.io", "sslip.io", "xip.io", "localtest.me", "lvh.me", "vcap.me":
		return true
	}
	return false
}
