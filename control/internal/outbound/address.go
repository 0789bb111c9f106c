package outbound

import (
	"net/netip"
)

// denied are the networks that are not the public internet (IANA's special-purpose registries), beside what netip's own
// predicates tell. The IPv6 ones that carry an IPv4 address are refused whole: what lies behind them is not to be known.
func denied() []netip.Prefix {
	var out []netip.Prefix
	for _, text := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
		"192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
		"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"168.63.129.16/32", // a cloud's metadata service on a public address
		"::/8",             // unspecified, loopback, IPv4-compatible, IPv4-mapped, IPv4-translated
		"64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64",
		"2001::/23",     // Teredo, benchmarking, ORCHID and what else the registry keeps
		"2001:db8::/32", // documentation
		"2002::/16",     // 6to4
		"2620:4f:8000::/48", "3fff::/20", "5f00::/16",
		"fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
	} {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// public reports whether an address is of the public internet. One of IPv4 is given in its own form.
func public(a netip.Addr, deny []netip.Prefix) bool {
	if !a.IsValid() || a.Zone() != "" || !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() {
		return false
	}
	if a.Is6() && !netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20}), 3).Contains(a) {
		return false // global unicast is 2000::/3 and nothing else
	}
	for _, p := range deny {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// allowed reports whether an address may be dialed: a public one at the port of https, or any port of a network that the
// configuration opened.
func (g *guard) allowed(at netip.AddrPort) bool {
	a := at.Addr().Unmap()
	for _, p := range g.open {
		if p.Contains(a) {
			return true
		}
	}
	return at.Port() == httpsPort && public(a, g.deny)
}
