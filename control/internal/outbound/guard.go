package outbound

import (
	"net/netip"
	"net/url"
	"strings"
	"syscall"
)

const (
	httpsPort  = 443
	longestURL = 8 << 10
)

// guard decides where requests may go.
type guard struct {
	deny []netip.Prefix
	open []netip.Prefix // of tests and the local stack
}

// control is asked by the dialer for the address that it connects to, after the name was resolved.
func (g *guard) control(network, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || (network != "tcp4" && network != "tcp6") || !g.allowed(at) {
		return &Error{Reason: Forbidden}
	}
	return nil
}

// check reads a URL and judges it before anything is resolved. Plain http, another port and an address in place of a
// name are for open networks alone.
func (g *guard) check(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case len(text) > longestURL, err != nil, u.User != nil, u.Opaque != "", u.Fragment != "", u.Host == "":
		return nil, &Error{Reason: Forbidden}
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		for _, p := range g.open {
			if p.Contains(a.Unmap()) && (u.Scheme == "http" || u.Scheme == "https") {
				return u, nil
			}
		}
		return nil, &Error{Reason: Forbidden}
	}
	port := u.Port()
	if u.Scheme != "https" || strings.HasSuffix(u.Host, ":") || port != "" && port != "443" || !PublicName(u.Hostname()) {
		return nil, &Error{Reason: Forbidden}
	}
	return u, nil
}

// PublicName reports whether a host is a name of the public DNS in its plain form: at least two labels of letters, digits
// and hyphens, at most 253 bytes, no final dot, and a last label that is alphabetic (or punycode), so that no notation of
// an address passes: not octal, not decimal, not hexadecimal, not in brackets. Names of private and special zones are
// refused. Names outside ASCII are to be given in punycode.
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

// special reports whether the labels are of a zone that is not of the public DNS (RFC 6761, RFC 8375, the reserved
// "internal", and those that networks are commonly given) or that resolves to addresses written in the name.
func special(labels []string) bool {
	switch labels[len(labels)-1] {
	case "localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "test", "example",
		"invalid", "onion", "alt", "arpa", "svc", "cluster":
		return true
	}
	switch strings.Join(labels[len(labels)-2:], ".") {
	case "nip.io", "sslip.io", "xip.io", "localtest.me", "lvh.me", "vcap.me":
		return true
	}
	return false
}
