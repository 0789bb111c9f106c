package stack

import (
	"fmt"
	"net"
	"strconv"

	"storefront.internal/deploy/local/project"
)

const defaultPortBase = 18080

// ports of a stack: PORT_BASE and its neighbours.
type ports struct {
	edge, control, engine, provider, postgres, redis, kafka, kafkaController int
	edgeAdmin, controlAdmin, relayAdmin                                      int
}

func portsFrom(base string) (ports, error) {
	b := defaultPortBase
	if base != "" {
		n, err := strconv.Atoi(base)
		if err != nil || n < 1024 || n > 65000 {
			return ports{}, fmt.Errorf("PORT_BASE=%q is no port of 1024 to 65000", base)
		}
		b = n
	}
	return ports{
		edge: b, control: b + 1, engine: b + 2, provider: b + 3, postgres: b + 4, redis: b + 5, kafka: b + 6, kafkaController: b + 7,
		edgeAdmin: b + 10, controlAdmin: b + 11, relayAdmin: b + 12,
	}, nil
}

// free tells which port somebody else holds, before anything is started.
func (p ports) free() error {
	for _, port := range []int{
		p.edge, p.control, p.engine, p.provider, p.postgres, p.redis, p.kafka, p.kafkaController, p.edgeAdmin, p.controlAdmin, p.relayAdmin,
	} {
		l, err := net.Listen("tcp", project.Loopback(port))
		if err != nil {
			return fmt.Errorf("port %d is taken: stop who holds it, or move all ports by PORT_BASE=…: %w", port, err)
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}
