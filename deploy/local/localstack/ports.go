package localstack

import (
	"fmt"
	"net"
	"strconv"

	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/stack"
)

const defaultPortBase = 18080

// ports is the first port of a stack; the others follow from it.
type ports int

// The distance of each listener's port from the first one; operations ports have their service's plus
// adminOffset.
const (
	edgePort = iota
	controlPort
	enginePort
	providerPort
	postgresPort
	redisPort
	kafkaPort
	kafkaControllerPort
	demoShopPort
	adminOffset   = 10
	relayAdmin    = 12
	demoShopEdge  = 13 // the proxy between the demo shop's pages and the edge
	portsOfAStack = 14
)

func portsFrom(base string) (ports, error) {
	if base == "" {
		return defaultPortBase, nil
	}
	n, err := strconv.Atoi(base)
	if err != nil || n < 1024 || n > 65000 {
		return 0, fmt.Errorf("PORT_BASE=%q is not a port from 1024 to 65000", base)
	}
	return ports(n), nil
}

func (p ports) number(offset int) int { return int(p) + offset }

func (p ports) address(offset int) string { return project.Loopback(p.number(offset)) }

func (p ports) url(offset int) string { return "http://" + p.address(offset) }

// addresses are those of the processes, by name.
func (p ports) addresses() map[string]stack.Address {
	return map[string]stack.Address{
		"edge":          {Listen: p.address(edgePort), Admin: p.address(edgePort + adminOffset)},
		"control":       {Listen: p.address(controlPort), Admin: p.address(controlPort + adminOffset)},
		"engine":        {Listen: p.address(enginePort)},
		"provider":      {Listen: p.address(providerPort)},
		"engine-relay":  {Admin: p.address(relayAdmin)},
		"demoshop":      {Listen: p.address(demoShopPort)},
		"demoshop-edge": {Listen: p.address(demoShopEdge)},
	}
}

// free reports the first port that another program uses.
func (p ports) free() error {
	for offset := range portsOfAStack {
		if offset > demoShopPort && offset < adminOffset {
			continue // unused
		}
		l, err := net.Listen("tcp", p.address(offset))
		if err != nil {
			return fmt.Errorf("port %d is in use: stop the program that listens there, or move all ports "+
				"by PORT_BASE=…: %w",
				p.number(offset), err)
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}
