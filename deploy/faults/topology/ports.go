package topology

import (
	"errors"
	"math/rand/v2"
	"net"

	"storefront.internal/deploy/local/project"
)

// ports hands out ports of the loopback interface from below the range from which the kernel takes the ports of outgoing
// connections: what is killed must find its port free when it comes back.
type ports struct {
	next int
}

const (
	lowestPort  = 12_000
	highestPort = 30_000
)

func newPorts() *ports { return &ports{next: lowestPort + rand.IntN(highestPort-lowestPort)} }

func (p *ports) take() (int, error) {
	for range highestPort - lowestPort {
		p.next++
		if p.next >= highestPort {
			p.next = lowestPort
		}
		listener, err := net.Listen("tcp", project.Loopback(p.next))
		if err == nil {
			return p.next, listener.Close()
		}
	}
	return 0, errors.New("topology: no port is free")
}

func (p *ports) address() (string, error) {
	port, err := p.take()
	return project.Loopback(port), err
}
