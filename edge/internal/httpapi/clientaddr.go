package httpapi

import (
	"bytes"
	"net"
	"net/netip"
	"slices"

	"github.com/valyala/fasthttp"
)

// clientAddress returns who sent the request: the peer, or the address that trusted proxies report. Each
// proxy appends the address that it saw. So the list is read from the right, and the first address that is
// not a trusted proxy is the client; what stands left of it may be forged. The header of an untrusted peer is
// ignored.
func clientAddress(peer netip.Addr, forwarded [][]byte, trusted []netip.Prefix) netip.Addr {
	client := peer
	for i := len(forwarded) - 1; i >= 0; i-- {
		rest := forwarded[i]
		for len(rest) > 0 {
			if !isTrusted(client, trusted) {
				return client
			}
			part := rest
			if j := bytes.LastIndexByte(rest, ','); j >= 0 {
				part, rest = rest[j+1:], rest[:j]
			} else {
				rest = nil
			}
			next, ok := parseHop(string(bytes.TrimSpace(part)))
			if !ok { // a trusted proxy did not know the address
				return client
			}
			client = next
		}
	}
	return client
}

// isTrusted reports whether the address is one of a trusted proxy.
func isTrusted(a netip.Addr, trusted []netip.Prefix) bool {
	return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(a) })
}

// parseHop reads an address as proxies write it: alone, with a port, or in brackets.
func parseHop(s string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Unmap().WithZone(""), true
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone(""), true
	}
	if len(s) > 2 && s[0] == '[' && s[len(s)-1] == ']' {
		a, err := netip.ParseAddr(s[1 : len(s)-1])
		return a.Unmap().WithZone(""), err == nil
	}
	return netip.Addr{}, false
}

// peerAddress is the address of the other end of the TCP connection; the zero address for other networks.
func peerAddress(ctx *fasthttp.RequestCtx) netip.Addr {
	if tcp, ok := ctx.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}
