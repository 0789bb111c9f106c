package httpapi

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"storefront.internal/edge/internal/ratelimit"
)

// shortIdle is how long a connection may be idle while more than three quarters of the table are taken.
const shortIdle = 5 * time.Second

// hurryInterval is the shortest time between two passes over the idle connections.
const hurryInterval = time.Second

// Why a connection is refused; a metric label.
const (
	tableFull   = "limit"
	addressFull = "address"
)

// connTable holds the open connections and bounds their number, in total and for each address that is no
// trusted proxy.
type connTable struct {
	max, perAddress int // perAddress 0: no limit
	trusted         []netip.Prefix
	count           atomic.Int64 // of open

	mu      sync.Mutex
	open    map[*conn]struct{}
	peers   map[netip.Prefix]*peer
	hurried time.Time // when idle connections were told last that the table is nearly full
}

// peer is an address that holds connections.
type peer struct {
	conns int
	bytes atomic.Int64 // that are reserved for bodies
}

func newConnTable(limit, perAddress int, trusted []netip.Prefix) *connTable {
	return &connTable{max: limit, perAddress: perAddress, trusted: trusted,
		open: map[*conn]struct{}{}, peers: map[netip.Prefix]*peer{}}
}

// add takes the connection, or returns why it is refused.
func (t *connTable) add(accepted net.Conn, budget *bodyBudget) (c *conn, refused string) {
	c = &conn{Conn: accepted, table: t, budget: budget, network: t.limitedNetwork(accepted)}
	if refused = t.put(c); refused != "" {
		return nil, refused
	}
	for _, idle := range t.idlers() {
		idle.hurry()
	}
	return c, ""
}

func (t *connTable) put(c *conn) (refused string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.open) >= t.max {
		return tableFull
	}
	if c.network.IsValid() {
		p := t.peers[c.network]
		if p == nil {
			p = &peer{}
			t.peers[c.network] = p
		}
		if p.conns >= t.perAddress {
			return addressFull
		}
		p.conns++
		c.peer = p
	}
	t.open[c] = struct{}{}
	t.count.Store(int64(len(t.open)))
	return ""
}

// idlers returns the connections that may have to hurry: all, when the table is nearly full and that is news.
func (t *connTable) idlers() []*conn {
	if !t.nearlyFull() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if now.Sub(t.hurried) < hurryInterval {
		return nil
	}
	t.hurried = now
	conns := make([]*conn, 0, len(t.open))
	for c := range t.open {
		conns = append(conns, c)
	}
	return conns
}

func (t *connTable) remove(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, c)
	t.count.Store(int64(len(t.open)))
	if c.peer != nil {
		if c.peer.conns--; c.peer.conns == 0 {
			delete(t.peers, c.network)
		}
	}
}

func (t *connTable) nearlyFull() bool { return t.count.Load() > int64(t.max)*3/4 }

// limitedNetwork is what counts as one address: an IPv4 address, or the /64 of an IPv6 address. It is the
// zero value where no limit applies.
func (t *connTable) limitedNetwork(c net.Conn) netip.Prefix {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok || t.perAddress == 0 {
		return netip.Prefix{}
	}
	address := tcp.AddrPort().Addr().Unmap().WithZone("")
	if isTrusted(address, t.trusted) {
		return netip.Prefix{}
	}
	return ratelimit.Network(address)
}
