package httpapi

import (
	"bytes"
	"net"
	"net/netip"

	"github.com/valyala/fasthttp"
)

// clientAddress answers who sent the request: the peer, or what trusted proxies say of it. Each proxy appends the
// address that it saw, so the list is read from the right, and the first address that is no trusted proxy is the
// client: everything left of it is the client's own invention. A stranger's header is not read at all.
func clientAddress(peer netip.Addr, forwarded [][]byte, trusted []netip.Prefix) netip.Addr {
	client := peer
	for i := len(forwarded) - 1; i >= 0; i-- {
		rest := forwarded[i]
		for len(rest) > 0 {
			if !contains(trusted, client) {
				return client
			}
			part := rest
			if j := bytes.LastIndexByte(rest, ','); j >= 0 {
				part, rest = rest[j+1:], rest[:j]
			} else {
				rest = nil
			}
			next, ok := parseHop(string(bytes.TrimSpace(part)))
			if !ok { // what a trusted proxy could not name is where the trail ends
				return client
			}
			client = next
		}
	}
	return client
}

// parseHop reads an address as proxies write it: bare, with a port, or in brackets.
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

func contains(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// peerAddress is the other end of the connection; the zero address when it is none of an IP network.
func peerAddress(ctx *fasthttp.RequestCtx) netip.Addr {
	if tcp, ok := ctx.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}
