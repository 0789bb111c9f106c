package stream

import (
	"time"

	"github.com/segmentio/kafka-go"
)

// metadataTTL bounds the age of a transport's metadata, and the time that a broker may take to answer a
// request for them.
const metadataTTL = 2 * time.Second

// newTransport returns a transport that fetches the metadata of the topics only, or of all when none is
// named.
func newTransport(s Security, clientID string, topics ...string) *kafka.Transport {
	return &kafka.Transport{
		ClientID: clientID, DialTimeout: 2 * time.Second, MetadataTTL: metadataTTL, MetadataTopics: topics,
		TLS: s.tls, SASL: s.sasl,
	}
}

// newClient returns a client and the function that closes its connections.
func newClient(brokers []string, s Security, clientID string, topics ...string) (*kafka.Client, func()) {
	transport := newTransport(s, clientID, topics...)
	return &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: 10 * time.Second, Transport: transport},
		transport.CloseIdleConnections
}
